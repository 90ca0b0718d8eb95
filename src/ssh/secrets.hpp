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

// Private keys and passwords of one command, shared by all its connections. Each is read, computed or asked
// for only once. Thread-safe: if another thread is already asking for a secret, a thread waits for that
// answer.
class Secrets {
 public:
  // `tell` is called for unusable keys; it may be empty.
  Secrets(AskSecret ask, std::function<void(const Error&)> tell, std::filesystem::path project)
      : ask_(std::move(ask)), tell_(std::move(tell)), project_(std::move(project)) {}

  // The result of reading a key file: the key, or the reason why there is none.
  struct KeyResult {
    KeyPtr key;           // a copy for the calling thread only
    std::string problem;  // "no such file", "wrong passphrase"
    std::string hint;     // what to do about the problem; may be empty
    bool missing = false;
    bool is_public = false;  // the file is the public half of a key
    bool locked = false;     // it needs a passphrase that is not known (yet) or was not given
  };
  // Reads a private key. Asks for the passphrase of an encrypted key only if `may_ask`.
  KeyResult key(const std::filesystem::path& file, bool may_ask);

  bool can_ask() const { return static_cast<bool>(ask_); }
  // Asks a question whose answer is not shared, for example for a one-time code.
  std::optional<std::string> ask(const std::string& prompt);
  // A login in progress that may need a typed password. `where` is the server's name in the prompt,
  // "user@host:port", and `user` is only the login name.
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
  // The typed password for a login. One question covers all logins in progress with this user name, and lists
  // them; the answer is used only for these.
  std::optional<std::string> shared_password(const std::string& user, const std::string& where);
  // Reports an unusable key, or what a login is waiting for, unless the same text was reported before.
  // Returns false if there is no function for such reports.
  bool tell_once(const Error& problem);
  // The first line that a command prints. The command is run once for all servers that use it.
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
  // The value for a key, which is created if it is missing. The reference stays valid as long as this object
  // exists.
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
  std::map<std::string, std::mutex> users_;  // one question at a time per user name
  std::vector<std::pair<std::string, std::string>>
      expected_;  // user and where of logins in progress, oldest first
  std::map<std::string, std::optional<std::string>> typed_;  // answers, by `where`
  std::set<std::string> told_;
};

}  // namespace remote::ssh
