#include "ssh/secrets.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"

namespace remote::ssh {
namespace {

constexpr int passphrase_attempts = 3;

struct Passphrase {
  const std::string* text = nullptr;
  bool wanted = false;
};

// libssh calls this when, and only when, the key is encrypted.
int give_passphrase(const char*, char* buffer, std::size_t size, int, int, void* data) {
  auto& passphrase = *static_cast<Passphrase*>(data);
  passphrase.wanted = true;
  if (passphrase.text == nullptr || passphrase.text->size() + 1 > size) {
    return -1;
  }
  std::memcpy(buffer, passphrase.text->c_str(), passphrase.text->size() + 1);
  return 0;
}

KeyPtr import_key(const std::string& content, Passphrase& passphrase) {
  ssh_key raw = nullptr;
  const char* text = passphrase.text != nullptr ? passphrase.text->c_str() : nullptr;
  if (ssh_pki_import_privkey_base64(content.c_str(), text, give_passphrase, &passphrase, &raw) != SSH_OK) {
    return nullptr;
  }
  return KeyPtr(raw);
}

}  // namespace

std::shared_ptr<Secrets::KeyEntry> Secrets::key_entry(const std::filesystem::path& file) {
  const std::lock_guard lock(mutex_);
  auto& entry = keys_[file];
  if (!entry) {
    entry = std::make_shared<KeyEntry>();
  }
  return entry;
}

std::shared_ptr<Secrets::TextEntry> Secrets::text_entry(const std::string& name) {
  const std::lock_guard lock(mutex_);
  auto& entry = texts_[name];
  if (!entry) {
    entry = std::make_shared<TextEntry>();
  }
  return entry;
}

Secrets::KeyResult Secrets::key(const std::filesystem::path& file, bool may_ask) {
  const auto entry = key_entry(file);
  const std::lock_guard lock(entry->mutex);
  std::string content;
  const bool question = may_ask && !entry->asked && ask_;
  if (!entry->tried || (entry->encrypted && !entry->key && question)) {
    if (::access(file.c_str(), R_OK) != 0) {
      entry->missing = errno == ENOENT || errno == ENOTDIR;
      entry->problem = entry->missing ? "no such file" : std::strerror(errno);
    } else {
      try {
        content = read_file(file);
      } catch (const Error& error) {
        entry->problem = error.reason();
      }
    }
  }
  if (!entry->tried && entry->problem.empty()) {
    Passphrase none;
    entry->key = import_key(content, none);
    entry->encrypted = none.wanted;
    if (!entry->key) {
      entry->problem = none.wanted ? "it is encrypted and nobody gave the passphrase"
                                   : "it is not a private key in a form that is understood";
    }
  }
  entry->tried = true;
  if (entry->encrypted && !entry->key && question) {
    entry->asked = true;
    for (int attempt = 0; attempt < passphrase_attempts && !entry->key; ++attempt) {
      const auto typed =
          ask(fmt::format("{}Passphrase for {}: ", attempt > 0 ? "Wrong. " : "", file.string()));
      if (!typed || typed->empty()) {
        break;
      }
      Passphrase passphrase{&*typed};
      entry->key = import_key(content, passphrase);
      entry->problem = entry->key ? "" : "wrong passphrase";
    }
  }
  KeyResult result;
  result.problem = entry->problem;
  result.missing = entry->missing;
  result.locked = entry->encrypted && !entry->key;
  if (entry->key) {
    result.key.reset(ssh_key_dup(entry->key.get()));
  }
  return result;
}

std::optional<std::string> Secrets::ask(const std::string& prompt) {
  if (!ask_) {
    return std::nullopt;
  }
  const std::lock_guard lock(ask_mutex_);
  return ask_(prompt);
}

std::optional<std::string> Secrets::shared_password(const std::string& user, const std::string& where) {
  const auto entry = text_entry("user " + user);
  const std::lock_guard lock(entry->mutex);
  if (!entry->known) {
    entry->text = ask(fmt::format("Password for {}: ", where));
    entry->known = true;
  }
  return entry->text;
}

std::string Secrets::from_command(const std::string& command, const Cancel& cancel) {
  const auto entry = text_entry("command " + command);
  const std::lock_guard lock(entry->mutex);
  if (!entry->known) {
    SubprocessSpec spec;
    spec.argv = {"sh", "-c", command};
    if (!project_.empty()) {
      spec.directory = project_;
    }
    const ExecResult result = run_subprocess(std::move(spec), {}, cancel);
    if (!result.status.success()) {
      throw Error("password_command failed",
                  fmt::format("{}: {}", result.status.describe(), trim(last_lines(result.err, 3))),
                  "run it by hand to see what it prints; its first line of output is the password");
    }
    entry->text = result.out.substr(0, result.out.find('\n'));
    entry->known = true;
  }
  return entry->text.value_or("");
}

}  // namespace remote::ssh
