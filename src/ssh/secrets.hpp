#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "ssh/connector.hpp"
#include "ssh/libssh.hpp"

namespace remote::ssh {

// Private keys and passwords of one command, shared by all its connections: each is read, computed or asked
// for once. Every function may be called from several threads; a thread that needs what another one is asking
// for waits for that answer.
class Secrets {
 public:
  Secrets(AskSecret ask, std::filesystem::path project)
      : ask_(std::move(ask)), project_(std::move(project)) {}

  // What came of a key file: the key, or why there is none.
  struct KeyResult {
    KeyPtr key;           // a copy for the caller's thread alone
    std::string problem;  // "no such file", "wrong passphrase"
    bool missing = false;
    bool locked = false;  // it needs a passphrase that nobody gave, or that is not known yet
  };
  // Reads a private key. An encrypted one is asked for only when `may_ask`.
  KeyResult key(const std::filesystem::path& file, bool may_ask);

  bool can_ask() const { return static_cast<bool>(ask_); }
  // Asks once; for prompts that are not to be shared (one-time codes).
  std::optional<std::string> ask(const std::string& prompt);
  // The password for a user name: asked the first time, then the same for every server. `where` names the
  // server in the prompt.
  std::optional<std::string> shared_password(const std::string& user, const std::string& where);
  // The first line that a command prints; run once for all servers that name it.
  std::string from_command(const std::string& command, const Cancel& cancel);

 private:
  struct KeyEntry {
    std::mutex mutex;
    bool tried = false;
    bool asked = false;
    KeyResult result;
  };
  struct TextEntry {
    std::mutex mutex;
    bool known = false;
    std::optional<std::string> text;
  };
  // The value under a key, made where there is none. It stays where it is as long as this object lives.
  template <typename Key, typename Entry>
  Entry& entry(std::map<Key, Entry>& entries, const Key& key) {
    const std::lock_guard lock(mutex_);
    return entries[key];
  }

  AskSecret ask_;
  std::filesystem::path project_;
  std::mutex mutex_;      // guards the maps
  std::mutex ask_mutex_;  // one question at a time
  std::map<std::filesystem::path, KeyEntry> keys_;
  std::map<std::string, TextEntry> texts_;
};

}  // namespace remote::ssh
