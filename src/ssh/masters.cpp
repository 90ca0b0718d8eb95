#include "ssh/masters.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <remote/error.hpp>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/log.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "server/agent_command.hpp"
#include "ssh/host_keys.hpp"
#include "ssh/tcp.hpp"

namespace remote::ssh {
namespace fs = std::filesystem;
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How long a server may take for its first answer over an open master. After that, the master's connection is
// considered dead, as after this machine has slept overnight.
constexpr milliseconds first_answer_limit{3000};
// How long it may take until a session is free again after its command.
constexpr milliseconds free_place_time{500};
// The maximum number of masters that we open for a server; each has about ten sessions.
constexpr int most_masters = 32;
// The length of our socket names, and of the suffix that ssh appends while it creates the socket.
constexpr std::size_t name_length = 16;
constexpr std::size_t number_length = 3;
constexpr std::size_t temporary_suffix = 17;

bool is_something(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

bool fits(const fs::path& folder) {
  constexpr std::size_t longest = 104;  // sun_path on macOS, including the NUL
  return folder.string().size() + 1 + name_length + number_length + temporary_suffix < longest;
}

// The socket of an additional master.
fs::path numbered(const fs::path& first, int number) {
  return number > 0 ? fs::path(first.string() + "-" + std::to_string(number)) : first;
}

// Whether it is the name of one of our sockets.
bool is_own_name(const std::string& name) {
  const std::string number = name.substr(std::min(name_length, name.size()));
  return name.size() >= name_length &&
         name.substr(0, name_length).find_first_not_of("0123456789abcdef") == std::string::npos &&
         (number.empty() || (number[0] == '-' && parse_number<int>(number.substr(1))));
}

bool is_private_folder(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 077) == 0;
}

std::string percent_free(const std::string& text) {
  return replace_all(text, "%", "%%");
}

// Quotes a value for an -o option, so that percent signs and blanks are taken literally.
std::string option_value(const std::string& text) {
  return "\"" + replace_all(replace_all(percent_free(text), "\\", "\\\\"), "\"", "\\\"") + "\"";
}

// The login facts of a connection over a master. The server's key is taken from known_hosts, because ssh has
// checked it.
LoginFacts login_of(const Target& target) {
  LoginFacts login;
  login.user = target.user.value;
  login.host = target.host.value;
  login.port = target.port.value;
  login.server = target.name;
  for (const auto& key : target.identities) {
    login.key_files.push_back(key.value);
  }
  login.agent = target.agent_socket();
  const std::vector<KnownKey> known = known_keys(target);
  for (const std::string_view type : {"ssh-ed25519", "ecdsa-", "rsa-", "ssh-rsa"}) {
    const auto key = std::ranges::find_if(
        known, [&](const KnownKey& one) { return one.is_host_key() && one.type.starts_with(type); });
    if (login.host_key.empty() && key != known.end()) {
      login.host_key = key->type + " " + key->base64;
    }
  }
  return login;
}

// An address for the ranks of other servers. A name that only ssh's own transport can resolve stays a name.
std::string address_for(const Target& target, const Cancel& cancel) {
  if (target.jumps.empty() && target.proxy_command.value.empty()) {
    try {
      return address_of(target.host.value, Patience(seconds(2), cancel));
    } catch (const Unreachable& error) {
      log_info(target.name, "{}", error.message());
    }
  }
  return target.host.value;
}

// If ssh and the server have no algorithm of one kind in common, returns the option of ssh_config for that
// kind; otherwise "". `said`: ssh's messages.
std::string find_algorithm_option(const std::string& said) {
  constexpr std::pair<std::string_view, std::string_view> options[] = {
      {"host key type", "HostKeyAlgorithms"},
      {"key exchange method", "KexAlgorithms"},
      {"cipher", "Ciphers"},
      {"MAC", "MACs"}};
  for (const auto& [kind, option] : options) {
    if (said.find(fmt::format("no matching {} found", kind)) != std::string::npos) {
      return std::string(option);
    }
  }
  return "";
}

// Throws the reason why ssh could not log in: Unreachable if it may be temporary. ssh only reports it as
// text, which is never translated.
[[noreturn]] void throw_refusal(const Target& target, const std::string& said) {
  const std::string what = "cannot log in as " + target.user.value;
  const std::string reason = "ssh says: " + (said.empty() ? "nothing" : last_lines(trim(said), 2));
  const auto has = [&](std::string_view words) { return said.find(words) != std::string::npos; };
  if (has("Permission denied") || has("Too many authentication")) {
    throw Error(what, reason).mended_by(Remedy::log_in).because(Cause::auth);
  }
  if (const std::string option = find_algorithm_option(said); !option.empty()) {
    throw Unreachable(
        "cannot connect", reason,
        "update the server's sshd, or allow one of its algorithms with " + option + " in ~/.ssh/config");
  }
  if (has("Host key verification failed")) {
    throw Error(what, reason,
                has("REVOKED HOST KEY") ? "do not connect; ask the server's administrator for its new key"
                : has("IDENTIFICATION HAS CHANGED")
                    ? "compare the key with the server's; known_hosts has the old one"
                : has("host key is known for")
                    ? "compare the key with the server's, then add it to known_hosts with ssh-keyscan"
                    : "compare the key with the server's and with known_hosts")
        .because(Cause::host_key);
  }
  throw Unreachable("cannot connect", reason, "check the address, the network and the server");
}

}  // namespace

Error all_taken(const std::string& why) {
  return Error("cannot run another command over the open login",
               "the server allows no more sessions over it (MaxSessions), and " + why,
               "wait until a command over it has ended, or raise MaxSessions in the server's sshd_config")
      .because(Cause::refused);
}

Target jump_of(const Target& target, std::size_t index) {
  Target hop = target.jumps.at(index);
  hop.jumps.assign(target.jumps.begin(), target.jumps.begin() + static_cast<std::ptrdiff_t>(index));
  return hop;
}

fs::path Masters::folder() const {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const fs::path short_one =
      runtime != nullptr && *runtime == '/' ? fs::path(runtime) / "remote" : fs::path();
  const bool usable = !short_one.empty() && fits(short_one) && is_private_folder(runtime);
  return !folder_.empty() ? folder_ : usable ? short_one : home_folder() / ".ssh" / "remote";
}

// Creates the folder if it does not exist.
void Masters::require_folder() const {
  const fs::path path = folder();
  if (!fits(path)) {
    throw Error::usage("cannot have control sockets", path.string() + " is too long for them",
                       "set XDG_RUNTIME_DIR to a short folder of mode 700, or `connection: libssh`");
  }
  make_folders(path.parent_path(), 0700);
  make_folders(path, 0700);
  if (!is_private_folder(path)) {
    throw Error::usage("cannot have control sockets", "other users may read " + path.string(),
                       "chmod 700 " + path.string());
  }
}

void Masters::remove_leftovers() const {
  const auto remove_all = [this] {
    const fs::path place = folder();
    std::set<fs::path> sockets;
    for (const fs::path& file : is_private_folder(place) ? entries_of(place) : std::vector<fs::path>()) {
      const std::string extension = file.extension().string();
      if ((extension == ".for" || extension == ".lock") && is_own_name(file.stem().string())) {
        sockets.insert(place / file.stem());
      }
    }
    for (const fs::path& socket : sockets) {
      const auto lock = is_something(socket) ? std::nullopt : FileLock::try_lock(socket.string() + ".lock");
      if (lock && !is_something(socket)) {  // otherwise another process has just opened it
        remove_file(socket.string() + ".for");
      }
      if (lock) {
        lock->remove_file();
      }
    }
  };
  std::call_once(leftovers_removed_, [&] {
    try {
      remove_all();
    } catch (const Error& error) {
      log_debug("", "{}", error.message());
    }
  });
}

fs::path Masters::socket_of(const Target& target) const {
  std::string way = target.describe();
  for (const Target& jump : target.jumps) {
    way += " " + jump.describe();
  }
  way += "\n" + target.proxy_command.value;
  return folder() / sha256_hex(way).substr(0, name_length);
}

// The existing sockets, whether or not a master answers on them.
std::vector<fs::path> Masters::sockets_of(const Target& target) const {
  std::vector<fs::path> paths;
  const fs::path first = socket_of(target);
  for (int number = 0; number < most_masters; ++number) {
    const fs::path path = numbered(first, number);
    if (is_something(path)) {
      paths.push_back(path);
    }
  }
  return paths;
}

// Returns nullptr if the master cannot be used. `full`: because the server allows no further session over it.
std::unique_ptr<MuxConnection> Masters::connect_over(const fs::path& path, bool ours, const Target& target,
                                                     const Cancel& cancel, milliseconds limit, bool& full) {
  const Stopwatch watch;
  try {
    auto connection =
        std::make_unique<MuxConnection>(path, login_of(target), address_for(target, cancel), ours, cancel);
    connection->prove(server::agent_command(), limit);
    log_info(target.name, "over the OpenSSH master {} after {}", path.string(), watch.text());
    return connection;
  } catch (const TooManyChannels&) {
    log_debug(target.name, "no further session over the OpenSSH master {}", path.string());
    full = true;
  } catch (const Unreachable& error) {
    log_info(target.name, "no answer over the OpenSSH master {}: {}", path.string(), error.message());
    if (ours) {
      mux::retire_master(path);
    }
  } catch (const Error& error) {
    log_info(target.name, "{}", error.message());
  }
  return nullptr;
}

std::unique_ptr<MuxConnection> Masters::connect(const Target& target, const Cancel& cancel,
                                                ConnectLimit limit, bool* full) const {
  remove_leftovers();
  const auto give_up = std::chrono::steady_clock::now() + free_place_time;
  for (;;) {
    const std::vector<fs::path> ours = sockets_of(target);
    std::vector<fs::path> paths = ours;
    std::ranges::copy_if(target.control_paths, std::back_inserter(paths), is_something);
    bool taken = false;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (auto connection =
              connect_over(paths[i], i < ours.size(), target, cancel,
                           std::min<milliseconds>(first_answer_limit, limit.value_or(seconds(60))), taken)) {
        return connection;
      }
    }
    if (!taken || std::chrono::steady_clock::now() >= give_up) {
      if (full != nullptr) {
        *full = taken;
      }
      return nullptr;
    }
    std::this_thread::sleep_for(milliseconds(20));  // another command may just have ended
  }
}

std::vector<std::string> Masters::command(const Target& target, const OpenMaster& how,
                                          const fs::path& socket) const {
  std::vector<std::string> words{"ssh"};
  const auto option = [&](const std::string& name, const std::string& value) {
    words.insert(words.end(), {"-o", name + "=" + value});
  };
  if (!user_config_.empty()) {
    words.insert(words.end(), {"-F", user_config_.string()});
  }
  for (const char* flag : {"-M", "-N", "-f", "-T"}) {
    words.emplace_back(flag);
  }
  option("ControlPath", option_value(socket.string()));
  option("ControlPersist", std::to_string(how.open_for.count()));
  option("ServerAliveInterval", "10");
  option("ServerAliveCountMax", "2");
  for (const char* name : {"ForwardAgent", "ForwardX11", "PermitLocalCommand", "Tunnel"}) {
    option(name, "no");
  }
  option("ClearAllForwardings", "yes");
  option("RemoteCommand", "none");
  option("BatchMode", how.on_terminal ? "no" : "yes");
  option("ConnectTimeout", std::to_string(target.connect_timeout_s.value));
  option("StrictHostKeyChecking", target.host_keys.value == config::HostKeys::strict ? "yes" : "accept-new");
  std::string files;
  for (const fs::path& file : target.known_hosts.value) {
    files += (files.empty() ? "" : " ") + option_value(file.string());
  }
  option("UserKnownHostsFile", files.empty() ? "none" : files);
  for (const auto& key : target.identities) {
    if (key.origin.starts_with("configs.yaml")) {
      words.insert(words.end(), {"-i", percent_free(key.value.string())});
      if (target.identities_given) {
        option("IdentitiesOnly", "yes");  // an agent with many keys would use up the attempts
      }
    }
  }
  if (!target.jumps.empty()) {
    const Target hop = jump_of(target, target.jumps.size() - 1);
    std::string way = "ssh";
    if (!user_config_.empty()) {
      way += " -F " + shell_quote(user_config_.string());
    }
    way += " -o ControlMaster=no -o BatchMode=yes -o ControlPath=" +
           shell_quote(option_value(socket_of(hop).string())) + " -l " + shell_quote(hop.user.value) +
           " -p " + std::to_string(hop.port.value) + " -W ";
    option("ProxyCommand", percent_free(way) + "[%h]:%p -- " + percent_free(shell_quote(hop.alias)));
  }
  words.insert(words.end(),
               {"-l", target.user.value, "-p", std::to_string(target.port.value), "--", target.alias});
  return words;
}

void Masters::start(const Target& target, const OpenMaster& how, const Cancel& cancel,
                    const fs::path& socket) const {
  require_folder();
  remove_leftovers();
  const FileLock lock(socket.string() + ".lock", &cancel);
  const struct AtEnd {
    const FileLock& lock;
    ~AtEnd() { lock.remove_file(); }
  } at_end{lock};
  if (mux::answers(socket, cancel)) {
    return;
  }
  remove_file(socket);  // left by a master that died
  const TempFolder folder("remote-login-");
  const fs::path log = folder.path() / "log";
  SubprocessSpec spec;
  spec.argv = command(target, how, socket);
  if (how.on_terminal) {
    spec.set_env = {{"SSH_ASKPASS_REQUIRE", "never"}};
  } else {
    spec.argv.insert(spec.argv.begin() + 1, {"-E", log.string()});
  }
  log_info(target.name, "opening an OpenSSH master for {}", target.describe());
  Subprocess ssh(spec);
  // ConnectTimeout covers only the connection. If the server then stops answering, don't wait longer than
  // this.
  const auto deadline = std::chrono::steady_clock::now() + seconds(target.connect_timeout_s.value + 20);
  while (!ssh.poll()) {
    cancel.check();
    if (!how.on_terminal && std::chrono::steady_clock::now() > deadline) {
      throw Unreachable(Error("cannot log in", fmt::format("{} stopped answering", target.describe()),
                              "check the server's load")
                            .because(Cause::timeout));
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
  const std::string said = read_file_if_there(log).value_or("");
  if (!ssh.wait().success()) {
    if (how.on_terminal) {
      throw Error("cannot log in as " + target.user.value, "ssh could not, as it says above",
                  "check user, key and code; `ssh -v` shows more")
          .because(Cause::auth);
    }
    throw_refusal(target, said);
  }
  if (!mux::answers(socket, cancel)) {
    throw Error("cannot use the control socket",
                "ssh has logged in, but its master does not answer" +
                    (said.empty() ? "" : ": " + last_lines(trim(said), 2)),
                "end that ssh process, or set `connection: libssh`");
  }
  write_file_atomic(socket.string() + ".for", std::to_string(how.open_for.count()), 0600);
}

void Masters::open(const Target& target, const OpenMaster& how, const Cancel& cancel) const {
  for (std::size_t i = 0; i < target.jumps.size(); ++i) {
    const Target hop = jump_of(target, i);
    start(hop, how, cancel, socket_of(hop));
  }
  start(target, how, cancel, socket_of(target));
}

void Masters::open_further(const Target& target, const Cancel& cancel) const {
  const fs::path first = socket_of(target);
  for (int number = 1; number < most_masters; ++number) {
    const fs::path socket = numbered(first, number);
    if (mux::answers(socket, cancel)) {
      continue;
    }
    try {
      return start(target, {}, cancel, socket);
    } catch (const Unreachable&) {
      throw;
    } catch (const Error& error) {
      if (error.cause() != Cause::auth) {
        throw;
      }
      throw all_taken("it asks a question for another login");
    }
  }
  throw all_taken(fmt::format("there are {} already", most_masters));
}

std::optional<seconds> Masters::open_for(const Target& target) const {
  const fs::path socket = socket_of(target);
  if (!mux::answers(socket)) {
    return std::nullopt;
  }
  return seconds(
      parse_number<int>(trim(read_file_if_there(socket.string() + ".for").value_or(""))).value_or(0));
}

bool Masters::any_open(const Target& target) const {
  return mux::answers(socket_of(target)) ||
         std::ranges::any_of(target.control_paths, [](const fs::path& path) { return mux::answers(path); });
}

bool Masters::close(const Target& target) const {
  bool closed = false;
  for (const fs::path& socket : sockets_of(target)) {
    if (mux::end_master(socket)) {
      closed = true;
      remove_file(socket);  // ssh closes its connection first, and only then removes the socket
    }
    remove_file(socket.string() + ".for");
  }
  return closed;
}

}  // namespace remote::ssh
