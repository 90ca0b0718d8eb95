#include "ssh/certificate.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "ssh/agent.hpp"

namespace remote::ssh {
namespace {

constexpr std::uint64_t forever = ~std::uint64_t{0};

// Removes a length-prefixed field from the front; nullopt if it is truncated.
std::optional<std::string> take_field(std::string_view& data) {
  const auto size = take_agent_number(data);
  if (!size || data.size() < *size) {
    return std::nullopt;
  }
  std::string field(data.substr(0, *size));
  data.remove_prefix(*size);
  return field;
}

std::optional<std::uint64_t> take_long(std::string_view& data) {
  const auto high = take_agent_number(data);
  const auto low = take_agent_number(data);
  return high && low ? std::optional(std::uint64_t{*high} << 32U | *low) : std::nullopt;
}

// The number of fields of the public key, by the certificate's type; 0: unknown type.
int count_key_fields(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, int>, 7> counts{{{"ssh-ed25519", 1},
                                                                    {"ssh-rsa", 2},
                                                                    {"rsa-sha2", 2},
                                                                    {"ecdsa-sha2", 2},
                                                                    {"ssh-dss", 4},
                                                                    {"sk-ssh-ed25519", 2},
                                                                    {"sk-ecdsa-sha2", 3}}};
  for (const auto& [begin, count] : counts) {
    if (type.starts_with(begin)) {
      return count;
    }
  }
  return 0;
}

std::string format_date(std::uint64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

}  // namespace

std::string validity_problem(std::string_view certificate, std::uint64_t now) {
  const std::string type = take_field(certificate).value_or("");
  const int fields = 1 + count_key_fields(type);  // the first one is a nonce
  for (int i = 0; i < fields; ++i) {
    if (!take_field(certificate)) {
      return {};
    }
  }
  // The serial number, type, id and users.
  const bool whole = fields > 1 && take_long(certificate) && take_agent_number(certificate) &&
                     take_field(certificate) && take_field(certificate);
  const auto after = whole ? take_long(certificate) : std::nullopt;
  const auto before = whole ? take_long(certificate) : std::nullopt;
  if (!after || !before) {
    return {};
  }
  if (*before != forever && now >= *before) {
    return "it expired on " + format_date(*before);
  }
  return now < *after ? "it is not valid before " + format_date(*after) : "";
}

std::string certificate_problem(const std::filesystem::path& file) {
  const std::vector<std::string> words = split_words(read_file_if_there(file).value_or(""));
  const auto content = words.size() > 1 ? base64_decode(words[1]) : std::nullopt;
  return content ? validity_problem(*content, static_cast<std::uint64_t>(std::time(nullptr))) : "";
}

}  // namespace remote::ssh
