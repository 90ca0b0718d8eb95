#include "ssh/host_keys.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <remote/error.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.hpp"
#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/log.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "config/trust.hpp"
#include "ssh/ssh_config.hpp"

namespace remote::ssh {
namespace fs = std::filesystem;
namespace {

constexpr std::array system_known_hosts{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"};

bool hash_matches(std::string_view field, const std::string& name) {
  // "|1|base64(salt)|base64(HMAC-SHA1(salt, name))"
  const std::vector<std::string> parts = split(field, '|');
  if (parts.size() != 4 || parts[1] != "1") {
    return false;
  }
  const auto salt = base64_decode(parts[2]);
  const auto hash = base64_decode(parts[3]);
  return salt && hash && hmac_sha1(*salt, name) == *hash;
}

bool names_match(const std::string& field, const std::string& name) {
  if (field.starts_with('|')) {
    return hash_matches(field, name);
  }
  return match_pattern_list(name, split(lower_case(field), ',')) > 0;
}

std::string fingerprint_of(const KnownKey& key) {
  const KeyPtr parsed =
      make_key(ssh_pki_import_pubkey_base64, key.base64.c_str(), ssh_key_type_from_name(key.type.c_str()));
  return parsed ? fingerprint(parsed.get()) : "a key that cannot be read";
}

// Opens a known_hosts file for appending, and locks it while it is open. The file is never replaced, so a
// lock on the file itself is sufficient.
UniqueFd open_locked(const fs::path& path) {
  UniqueFd fd = open_regular(path, O_RDWR | O_CREAT | O_APPEND, 0600);
  // If the file system has no locks, we can only rely on a single write(2) of the whole line.
  if (fd) {
    uninterrupted([&] { return ::flock(fd.get(), LOCK_EX); });
  }
  return fd;
}

bool ends_with_newline(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  char last = '\n';
  return size <= 0 || (::pread(fd, &last, 1, size - 1) == 1 && last == '\n');
}

}  // namespace

std::string known_hosts_name(const std::string& host, int port) {
  const std::string name = lower_case(host);
  return port == 22 ? name : fmt::format("[{}]:{}", name, port);
}

std::vector<KnownKey> find_known_keys(std::string_view text, const std::string& name, const fs::path& file) {
  std::vector<KnownKey> found;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    std::vector<std::string> words = split_words(line);
    const bool revoked = !words.empty() && words[0] == "@revoked";
    const bool authority = !words.empty() && words[0] == "@cert-authority";
    if (revoked || authority) {
      words.erase(words.begin());
    }
    if (words.size() < 3 || words[0].starts_with('#') || words[0].starts_with('@') ||
        !names_match(words[0], name)) {
      continue;
    }
    found.push_back({file, number, words[1], words[2], revoked, authority});
  }
  return found;
}

int foreign_line(std::string_view text) {
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    std::vector<std::string> words = split_words(line);
    if (words.empty() || words[0].starts_with('#')) {
      continue;
    }
    if (words[0] == "@revoked" || words[0] == "@cert-authority") {
      words.erase(words.begin());
    }
    const auto is_type = [](const std::string& word) {
      return word.starts_with("ssh-") || word.starts_with("ecdsa-sha2-") || word.starts_with("sk-");
    };
    const auto is_number = [](const std::string& word) {
      return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    };
    if (words.size() >= 4 && is_number(words[1]) && is_number(words[2]) && is_number(words[3])) {
      continue;  // an SSH-1 key
    }
    // If the first word is a key type, or an option with a value, the line belongs in authorized_keys.
    if (words.size() < 3 || is_type(words[0]) || !is_type(words[1]) || !base64_decode(words[2]) ||
        (!words[0].starts_with("|1|") && words[0].find_first_of("=|\"'`$();<>&") != std::string::npos)) {
      return number;
    }
  }
  return 0;
}

std::string hashed_name(const std::string& name) {
  std::string salt;
  for (int i = 0; i < 20; ++i) {
    salt += static_cast<char>(random_between(0, 255));
  }
  return "|1|" + base64_encode(salt) + "|" + base64_encode(hmac_sha1(salt, name));
}

KeyState judge_key(const std::vector<KnownKey>& known, const std::string& type, const std::string& base64) {
  const auto is_it = [&](const KnownKey& key) { return key.type == type && key.base64 == base64; };
  const auto any = [&](const auto& fits) { return std::ranges::any_of(known, fits); };
  if (any([&](const KnownKey& key) { return key.revoked && is_it(key); })) {
    return KeyState::revoked;
  }
  if (any([&](const KnownKey& key) { return key.is_host_key() && is_it(key); })) {
    return KeyState::known;
  }
  if (any([&](const KnownKey& key) { return key.is_host_key() && key.type == type; })) {
    return KeyState::changed;
  }
  return any([](const KnownKey& key) { return key.is_host_key(); }) ? KeyState::other_type : KeyState::fresh;
}

std::string preferred_algorithms(const std::vector<KnownKey>& known) {
  std::vector<std::string> order;
  const auto add = [&](const std::string& algorithm) {
    if (std::ranges::find(order, algorithm) == order.end()) {
      order.push_back(algorithm);
    }
  };
  for (const KnownKey& key : known) {
    if (!key.is_host_key()) {
      continue;
    }
    if (key.type == "ssh-rsa") {
      add("rsa-sha2-512");
      add("rsa-sha2-256");
    } else if (key.type == "ssh-ed25519" || key.type.starts_with("ecdsa-sha2-nistp")) {
      add(key.type);
    }
  }
  if (order.empty()) {
    return {};
  }
  for (const char* algorithm : {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                                "ecdsa-sha2-nistp521", "rsa-sha2-512", "rsa-sha2-256"}) {
    add(algorithm);
  }
  return join(order, ",");
}

namespace {

std::string listed_name(const Target& target) {
  return target.host_key_alias.value.empty() ? known_hosts_name(target.host.value, target.port.value)
                                             : lower_case(target.host_key_alias.value);
}

}  // namespace

std::vector<KnownKey> known_keys(const Target& target) {
  const std::string name = listed_name(target);
  const std::string bare = lower_case(target.host.value);
  std::vector<fs::path> files = target.known_hosts.value;
  files.insert(files.end(), system_known_hosts.begin(), system_known_hosts.end());
  std::vector<KnownKey> found;
  for (const fs::path& file : files) {
    auto text = read_file_if_there(file);
    if (!text) {
      continue;
    }
    text = remove_byte_order_mark(std::move(*text), file);
    std::ranges::move(find_known_keys(*text, name, file), std::back_inserter(found));
    if (bare != name && target.host_key_alias.value.empty()) {
      // Like ssh: lines of a certificate authority apply to every port.
      for (KnownKey& key : find_known_keys(*text, bare, file)) {
        if (key.authority) {
          found.push_back(std::move(key));
        }
      }
    }
  }
  return found;
}

namespace {

[[noreturn]] void refuse(KeyState state, const std::vector<KnownKey>& known, ssh_key server_key,
                         const std::string& name) {
  const std::string type = key_type_name(server_key);
  const std::string shown = fmt::format("{} {}", type, fingerprint(server_key));
  if (state == KeyState::revoked) {
    throw Error("the server's key is revoked",
                fmt::format("{} is marked @revoked in known_hosts; the server showed {}", name, shown),
                "do not connect; ask the server's administrator for its new key");
  }
  const auto line = std::ranges::find_if(known, [&](const KnownKey& key) {
    return key.is_host_key() && (state == KeyState::other_type || key.type == type);
  });
  const std::string told =
      fmt::format("{} {} ({}:{})", line->type, fingerprint_of(*line), line->file.string(), line->line);
  const std::string hint = fmt::format(
      "this may be an attack, or the server was reinstalled. If you trust it: ssh-keygen -R {} -f {}",
      shell_quote(name), shell_quote(line->file.string()));
  if (state == KeyState::changed) {
    throw Error("the server's key has changed",
                fmt::format("{} showed {}, but the known key is {}", name, shown, told), hint);
  }
  throw Error("the server shows a key of another type",
              fmt::format("{} showed {}, but the known key is {}, which it did not offer", name, shown, told),
              hint);
}

// Whether the file was not chosen by the user's own ~/.ssh/config.
bool is_foreign_choice(const config::Setting<std::vector<fs::path>>& files) {
  return files.origin.starts_with("configs.yaml") || files.origin == "option";
}

// Why the file is unsuitable for host keys; "" if it is suitable. If the project names the file, every line
// must have the right form, because it could be any file of the user.
std::string unfit_reason(const fs::path& file, const std::string& text, bool named_by_project) {
  if (resolved(file).filename().string().starts_with("authorized_keys")) {
    return "it controls logins to this machine";
  }
  const int line = named_by_project ? foreign_line(remove_byte_order_mark(text, file)) : 0;
  return line == 0 ? "" : fmt::format("line {} does not belong in a known_hosts file", line);
}

std::string write_failure(const fs::path& file, int error) {
  return fmt::format("the key could not be saved in {}: {}", file.string(),
                     std::generic_category().message(error));
}

// The error if host_keys is strict.
Error not_known(const Target& target, const std::string& type, const std::string& shown) {
  const std::string file =
      target.known_hosts.value.empty() ? "known_hosts" : target.known_hosts.value.front().string();
  return {"the server's key is not known",
          fmt::format("{} showed {} {}, and host_keys is strict ({})", listed_name(target), type, shown,
                      target.host_keys.origin),
          fmt::format("compare the fingerprint with the server's, then: ssh-keyscan -t {} -p {} {} >> {}",
                      type.starts_with("ecdsa") ? "ecdsa"
                      : type == "ssh-rsa"       ? "rsa"
                                                : "ed25519",
                      target.port.value, target.host.value, file)};
}

}  // namespace

std::optional<NewHostKey> check_host_key(ssh_session session, const Target& target,
                                         const config::Config& config) {
  const KeyPtr key = make_key(ssh_get_server_publickey, session);
  if (!key) {
    throw Error("cannot check the server's key", last_error(session, "the server showed none"),
                "is it an SSH server? `ssh -v` shows its answers");
  }
  const std::string type = key_type_name(key.get());
  const std::string base64 = key_base64(key.get());
  const std::string name = listed_name(target);
  std::vector<KnownKey> found = known_keys(target);
  log_info(target.name, "host key {} {} is {}", type, fingerprint(key.get()),
           judge_key(found, type, base64) == KeyState::known ? "known" : "not known");
  // Returns true if one of the lines has this key; throws if a line contradicts it.
  const auto is_known = [&] {
    const KeyState state = judge_key(found, type, base64);
    if (state != KeyState::known && state != KeyState::fresh) {
      refuse(state, found, key.get(), name);
    }
    return state == KeyState::known;
  };
  if (is_known()) {
    return std::nullopt;
  }
  const auto authority = std::ranges::find_if(found, &KnownKey::authority);
  if (authority != found.end()) {
    throw NeedsOpenssh(Error(
        "cannot check the server's key",
        fmt::format("{}:{} names a certificate authority for {}, and libssh checks no host certificates",
                    authority->file.string(), authority->line, name),
        "set `connection: openssh` in configs.yaml, and OpenSSH checks it"));
  }
  if (target.host_keys.value == config::HostKeys::strict) {
    throw not_known(target, type, fingerprint(key.get()));
  }
  NewHostKey fresh{target.name, name, type, fingerprint(key.get()), {}};
  if (target.known_hosts.value.empty()) {
    return fresh;  // UserKnownHostsFile is `none`
  }
  const fs::path& file = target.known_hosts.value.front();
  if (!is_there(file.parent_path())) {
    ::mkdir(file.parent_path().c_str(), 0700);
  }
  const UniqueFd locked = open_locked(file);
  if (!locked) {
    fresh.warning = write_failure(file, errno);
    return fresh;
  }
  const std::string before = read_file_if_there(file).value_or("");
  if (const std::string why = unfit_reason(file, before, is_foreign_choice(target.known_hosts));
      !why.empty()) {
    throw Error("the server's key cannot be saved", fmt::format("{}: {}", file.string(), why),
                fmt::format("it would be added there ({}); name another file, or fix that line",
                            target.known_hosts.origin));
  }
  // Another connection may have written it while this one waited.
  found = known_keys(target);
  if (is_known()) {
    return std::nullopt;
  }
  const std::string line =
      fmt::format("{}{} {} {}\n", ends_with_newline(locked.get()) ? "" : "\n",
                  target.hash_known_hosts.value ? hashed_name(name) : name, type, base64);
  config::add_host_key(config, file, before, before + line, [&] {
    if (::write(locked.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      fresh.warning = write_failure(file, errno);
    }
  });
  return fresh;
}

}  // namespace remote::ssh
