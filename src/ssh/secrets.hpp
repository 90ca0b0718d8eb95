#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ssh/connector.hpp"
#include "ssh/libssh.hpp"

namespace remote::ssh {

// Private keys and passwords of one command, shared by all its connections: each is read, computed or asked
// for once. Every function may be called from several threads; a thread that needs what another one is asking
// for waits for that answer.
class Secrets {
 public:
  // `tell` is told of keys that are of no use; it may be empty.
  Secrets(AskSecret ask, std::function<void(const Error&)> tell, std::filesystem::path project)
      : ask_(std::move(ask)), tell_(std::move(tell)), project_(std::move(project)) {}

  // What came of a key file: the key, or why there is none.
  struct KeyResult {
    KeyPtr key;           // a copy for the caller's thread alone
    std::string problem;  // "no such file", "wrong passphrase"
    std::string hint;     // what to do about it; may be empty
    bool missing = false;
    bool is_public = false;  // it is the public half of a key
    bool locked = false;     // it needs a passphrase that nobody gave, or that is not known yet
  };
  // Reads a private key. An encrypted one is asked for only when `may_ask`.
  KeyResult key(const std::filesystem::path& file, bool may_ask);

  bool can_ask() const { return static_cast<bool>(ask_); }
  // Asks once; for prompts that are not to be shared (one-time codes).
  std::optional<std::string> ask(const std::string& prompt);
  // A login that is under way and may need a password that a person types. `where` is what the prompt calls
  // the server, "user@host:port", `user` the login name alone.
  class Expecting {
   public:
    Expecting(Secrets& secrets, std::string user, std::string where);
    ~Expecting();
    Expecting(const Expecting&) = delete;
    Expecting& operator=(const Expecting&) = delete;

   private:
    Secrets& secrets_;
    std::pair<std::string, std::string> login_;
  };
  // The password for a login. One question is for all logins under way of this user name, and it names them:
  // the answer is given to these and to no other.
  std::optional<std::string> shared_password(const std::string& user, const std::string& where);
  // Tells of a key that is of no use, or of what a login waits for, unless the same was told before. False if
  // nobody is told such things.
  bool tell_once(const Error& problem);
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
  std::function<void(const Error&)> tell_;
  std::filesystem::path project_;
  std::mutex mutex_;      // guards the maps
  std::mutex ask_mutex_;  // one question at a time
  std::map<std::filesystem::path, KeyEntry> keys_;
  std::map<std::string, TextEntry> texts_;
  std::map<std::string, std::mutex> users_;                    // one question a user name
  std::vector<std::pair<std::string, std::string>> expected_;  // user and where, oldest first
  std::map<std::string, std::optional<std::string>> typed_;    // by where
  std::set<std::string> told_;
};

}  // namespace remote::ssh
