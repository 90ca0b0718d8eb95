#include "servers/authorize.hpp"

#include <chrono>
#include <vector>

#include <remote/error.hpp>

#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "servers/agent.hpp"
#include "ssh/agent.hpp"
#include "wire/text.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t longest_key = std::size_t{64} * 1024;

// The beginning of a key of this type in binary form: a length of four bytes, then the name.
std::string type_field(const std::string& type) {
  return ssh::agent_number(static_cast<std::uint32_t>(type.size())) + type;
}

Error not_a_key(const std::string& file, const std::string& reason) {
  return Error::usage("cannot use " + file, reason, "name the public half: the file that ends in .pub");
}

}  // namespace

std::string PublicKey::line() const {
  return type + " " + blob + (comment.empty() ? "" : " " + comment);
}

PublicKey parse_public_key(std::string_view text, const std::string& file) {
  if (text.find("PRIVATE KEY") != std::string_view::npos) {
    throw not_a_key(file, "it is a private key, which never leaves this machine");
  }
  std::optional<PublicKey> found;
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const std::vector<std::string> words = split_words(line);
    if (found) {
      throw not_a_key(file, "there is more than one line in it");
    }
    const auto binary =
        words.size() >= 2 && line.size() <= longest_key ? base64_decode(words[1]) : std::nullopt;
    if (!binary || !binary->starts_with(type_field(words[0]))) {
      throw not_a_key(file, "it holds no public key in OpenSSH's form");
    }
    if (words[0].find("-cert-v0") != std::string::npos) {
      throw not_a_key(file, "it is a certificate; authorized_keys takes the key itself");
    }
    PublicKey key{words[0], words[1], ""};
    for (std::size_t i = 2; i < words.size(); ++i) {
      key.comment += (i > 2 ? " " : "") + words[i];
    }
    // A comment may contain anything, but on a server it must be one line of text.
    if (!wire::is_line(key.comment)) {
      key.comment.clear();
    }
    found = std::move(key);
  }
  if (!found) {
    throw not_a_key(file, "it is empty");
  }
  return *found;
}

wire::AuthorizeReply authorize(ssh::Connection& connection, const PublicKey& key, const Cancel& cancel) {
  AgentQuestion question;
  question.what = "authorize";
  question.request = wire::AuthorizeRequest{key.type, key.blob, key.comment};
  question.timeout = std::chrono::seconds(60);
  auto reply = take_reply<wire::AuthorizeReply>(ask_agent(connection, question, cancel));
  if (reply.state == wire::KeyState::failed) {
    throw Error("cannot authorize the key", reply.problem).mended_by(Remedy::tell_more);
  }
  return reply;
}

}  // namespace remote::servers
