#include "ssh/secrets.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <remote/error.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/kept_modes.hpp"
#include "base/paths.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"

namespace remote::ssh {
namespace {

constexpr int passphrase_attempts = 3;
constexpr std::chrono::milliseconds time_to_begin{100};

struct Passphrase {
  const std::string* text = nullptr;
  bool wanted = false;
};

// libssh calls this only if the key is encrypted.
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
  const char* text = passphrase.text != nullptr ? passphrase.text->c_str() : nullptr;
  return make_key(ssh_pki_import_privkey_base64, content.c_str(), text, give_passphrase, &passphrase);
}

}  // namespace

Secrets::KeyResult Secrets::key(const std::filesystem::path& file, bool may_ask) {
  KeyEntry& one = entry(keys_, file);
  const std::lock_guard lock(one.mutex);
  KeyResult& result = one.result;
  std::string content;
  const bool question = may_ask && !one.asked && ask_;
  if (!one.tried || (result.locked && question)) {
    try {
      const auto text = read_file_if_there(file);
      result.missing = !text;
      result.problem = !text ? "no such file" : result.locked ? result.problem : "";
      content = text.value_or("");
    } catch (const Error& error) {
      result.problem = error.reason();
      result.hint = is_folder(file) ? "name a file" : "make it readable for you: chmod 600 " + file.string();
    }
  }
  if (!one.tried && result.problem.empty()) {
    Passphrase none;
    result.key = import_key(content, none);
    result.locked = none.wanted && !result.key;
    if (!result.key) {
      result.is_public = make_key(ssh_pki_import_pubkey_file, file.c_str()) != nullptr;
      if (none.wanted) {
        result.problem = "it is encrypted and no passphrase was given";
        result.hint = "`ssh-add " + file.string() + "` gives it to your agent";
      } else if (result.is_public) {
        result.problem = "it is the public half of a key, and no agent holds the private one";
        result.hint =
            "name the private key, which usually is beside it without .pub, or add it to your agent";
      } else if (content.starts_with("PuTTY-User-Key-File")) {
        result.problem = "it is a key of PuTTY, which only PuTTY reads";
        result.hint = fmt::format("convert it: puttygen {0} -O private-openssh -o {0}.openssh, and name that",
                                  shell_quote(file.string()));
      } else if (content.starts_with("---- ")) {
        result.problem = "it is a key in the form of ssh.com";
        result.hint = fmt::format("convert it: ssh-keygen -i -f {0} >{0}.openssh, and name that",
                                  shell_quote(file.string()));
      } else {
        result.problem = "it is not a private key in a form that is understood";
      }
    }
    struct stat info {};
    if ((result.key || result.locked) && ::stat(file.c_str(), &info) == 0 && info.st_uid == ::geteuid() &&
        (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
      result = {};  // ssh does the same, because a key that others can read may have been stolen
      result.problem = fmt::format("others may read it (mode {:04o})", info.st_mode & 07777U);
      result.hint =
          advise_mode(keeps_modes(file), "chmod 600 " + shell_quote(file.string()), "keep the key in ~/.ssh");
    }
  }
  one.tried = true;
  if (result.locked && question) {
    one.asked = true;
    for (int attempt = 0; attempt < passphrase_attempts && result.locked; ++attempt) {
      const auto typed =
          ask(fmt::format("{}Passphrase for {}: ", attempt > 0 ? "Wrong. " : "", file.string()));
      if (!typed || typed->empty()) {
        break;
      }
      Passphrase passphrase{&*typed};
      result.key = import_key(content, passphrase);
      result.locked = !result.key;
      result.problem = result.key ? "" : "wrong passphrase";
      result.hint = result.key ? "" : result.hint;
    }
  }
  return {KeyPtr(result.key ? ssh_key_dup(result.key.get()) : nullptr),
          result.problem,
          result.hint,
          result.missing,
          result.is_public,
          result.locked};
}

std::optional<std::string> Secrets::ask(const std::string& prompt) {
  if (!ask_) {
    return std::nullopt;
  }
  const std::lock_guard lock(ask_mutex_);
  return ask_(prompt);
}

bool Secrets::tell_once(const Error& problem) {
  const std::lock_guard lock(ask_mutex_);
  if (tell_ && told_.insert(problem.what_failed() + problem.reason()).second) {
    tell_(problem);
  }
  return tell_ != nullptr;
}

Secrets::Expecting::Expecting(Secrets& secrets, std::string user, std::string where)
    : secrets_(secrets), login_(std::move(user), std::move(where)) {
  const std::lock_guard lock(secrets_.mutex_);
  secrets_.expected_.push_back(login_);
}

Secrets::Expecting::~Expecting() {
  const std::lock_guard lock(secrets_.mutex_);
  secrets_.expected_.erase(std::ranges::find(secrets_.expected_, login_));
}

std::optional<std::string> Secrets::shared_password(const std::string& user, const std::string& where) {
  const std::lock_guard question(entry(users_, user));
  std::vector<std::string> named{where};
  {
    std::unique_lock lock(mutex_);
    if (const auto typed = typed_.find(where); typed != typed_.end()) {
      return typed->second;
    }
    // The threads of other servers may start their logins a moment later. Wait, so that one question covers
    // all of them.
    lock.unlock();
    std::this_thread::sleep_for(time_to_begin);
    lock.lock();
    for (const auto& [other_user, other] : expected_) {
      if (other_user == user && !typed_.contains(other) && std::ranges::find(named, other) == named.end()) {
        named.push_back(other);
      }
    }
  }
  auto text = ask(fmt::format("Password for {}: ", join(named, ", ")));
  const std::lock_guard lock(mutex_);
  for (const std::string& one : named) {
    typed_[one] = text;
  }
  return text;
}

std::string Secrets::from_command(const std::string& command, const Cancel& cancel) {
  TextEntry& one = entry(texts_, "command " + command);
  const std::lock_guard lock(one.mutex);
  if (!one.known) {
    SubprocessSpec spec;
    spec.argv = {"sh", "-c", command};
    spec.new_session = true;  // so that all processes of a pipeline can be killed together
    if (!project_.empty()) {
      spec.directory = project_;
    }
    const ExecResult result = run_subprocess(std::move(spec), {}, cancel);
    if (!result.status.success()) {
      throw Error("password_command failed", result.describe(),
                  "run it by hand to see what it prints; its first line of output is the password");
    }
    one.text = result.out.substr(0, result.out.find('\n'));
    one.known = true;
  }
  return one.text.value_or("");
}

}  // namespace remote::ssh
