#include "ssh/agent.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <remote/error.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "ssh/local_socket.hpp"

namespace remote::ssh {
namespace {

// draft-miller-ssh-agent, section 5.1
constexpr char request_identities = 11;
constexpr char identities_answer = 12;
constexpr char sign_request = 13;

// Reads exactly `size` bytes. Returns false at EOF, on an error, when `stop` becomes readable, or after the
// limit.
bool read_exactly(int fd, int stop, int limit_ms, char* data, std::size_t size) {
  while (size > 0) {
    std::array<pollfd, 2> fds{{{fd, POLLIN, 0}, {stop, POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), limit_ms);
    if (ready == 0 || (ready < 0 && errno != EINTR) || fds[1].revents != 0) {
      return false;
    }
    if (fds[0].revents == 0) {
      continue;
    }
    const ssize_t count = ::read(fd, data, size);
    if (count <= 0) {
      return false;
    }
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

std::optional<std::string> take_string(std::string_view& data) {
  const auto size = take_agent_number(data);
  if (!size || data.size() < *size) {
    return std::nullopt;
  }
  std::string text(data.substr(0, *size));
  data.remove_prefix(*size);
  return text;
}

}  // namespace

std::string agent_number(std::uint32_t value) {
  std::string text(sizeof value, '\0');
  const std::uint32_t ordered = htonl(value);
  std::memcpy(text.data(), &ordered, sizeof ordered);
  return text;
}

std::optional<std::uint32_t> take_agent_number(std::string_view& data) {
  std::uint32_t ordered = 0;
  if (data.size() < sizeof ordered) {
    return std::nullopt;
  }
  std::memcpy(&ordered, data.data(), sizeof ordered);
  data.remove_prefix(sizeof ordered);
  return ntohl(ordered);
}

std::optional<std::string> read_agent_message(int fd, int stop, std::chrono::milliseconds limit) {
  const int limit_ms = limit.count() > 0 ? static_cast<int>(limit.count()) : -1;
  std::array<char, 4> head{};
  if (!read_exactly(fd, stop, limit_ms, head.data(), head.size())) {
    return std::nullopt;
  }
  std::string_view view(head.data(), head.size());
  const std::uint32_t size = take_agent_number(view).value_or(0);
  if (size == 0 || size > longest_agent_message) {
    return std::nullopt;
  }
  std::string body(size, '\0');
  if (!read_exactly(fd, stop, limit_ms, body.data(), body.size())) {
    return std::nullopt;
  }
  return body;
}

bool send_agent_message(int fd, const std::string& body) {
  const std::string message = agent_number(static_cast<std::uint32_t>(body.size())) + body;
  return write_all(fd, message);
}

bool is_agent_list_request(std::string_view message) {
  return message.size() == 1 && message.front() == request_identities;
}

std::optional<std::string> agent_signing_key(std::string_view message) {
  if (message.empty() || message.front() != sign_request) {
    return std::nullopt;
  }
  message.remove_prefix(1);
  auto key = take_string(message);
  const bool whole = key && take_string(message) && take_agent_number(message) && message.empty();
  return whole ? std::move(key) : std::nullopt;
}

std::string login_permission(const std::string& key, const std::string& user, const std::string& host_key) {
  if (key.empty() || user.empty() || host_key.empty()) {
    return {};
  }
  std::string text;
  for (const std::string& part : {key, user, host_key}) {
    text += agent_number(static_cast<std::uint32_t>(part.size())) + part;
  }
  return text;
}

std::set<std::string> permitted_keys(const std::set<std::string>& permissions) {
  std::set<std::string> keys;
  for (std::string_view permission : permissions) {
    keys.insert(take_string(permission).value_or(""));
  }
  return keys;
}

bool is_permitted_login(std::string_view message, const std::set<std::string>& permissions) {
  const auto key = agent_signing_key(message);
  if (!key) {
    return false;
  }
  message.remove_prefix(1 + sizeof(std::uint32_t) + key->size());
  const std::string data = take_string(message).value_or("");
  // RFC 4252, section 7, followed by the host key.
  std::string_view view = data;
  const auto session = take_string(view);
  constexpr char userauth_request = 50;
  if (!session || view.empty() || view.front() != userauth_request) {
    return false;
  }
  view.remove_prefix(1);
  const auto user = take_string(view);
  const auto service = take_string(view);
  const auto method = take_string(view);
  if (!method || service != "ssh-connection" || method != "publickey-hostbound-v00@openssh.com" ||
      view.empty() || view.front() != 1) {
    return false;
  }
  view.remove_prefix(1);
  const auto algorithm = take_string(view);
  const auto signing = take_string(view);
  const auto host_key = take_string(view);
  if (!algorithm || signing != key || !host_key || !view.empty()) {
    return false;
  }
  const std::string wanted = login_permission(*key, *user, *host_key);
  return !wanted.empty() && permissions.contains(wanted);
}

std::string filter_identities(std::string_view answer, const std::set<std::string>& keys) {
  std::string kept;
  std::uint32_t count = 0;
  if (!answer.empty() && answer.front() == identities_answer) {
    answer.remove_prefix(1);
    const std::uint32_t listed = take_agent_number(answer).value_or(0);
    for (std::uint32_t i = 0; i < listed; ++i) {
      const auto key = take_string(answer);
      const auto comment = take_string(answer);
      if (!key || !comment) {
        break;
      }
      if (keys.contains(*key)) {
        kept += agent_number(static_cast<std::uint32_t>(key->size())) + *key;
        kept += agent_number(static_cast<std::uint32_t>(comment->size())) + *comment;
        ++count;
      }
    }
  }
  return identities_answer + agent_number(count) + kept;
}

AgentFilter::AgentFilter(std::string agent) : agent_(std::move(agent)), folder_("remote-agent-") {
  listener_ = listen_local(path(), 4);
  if (!listener_) {
    throw Error("cannot use the SSH agent", std::generic_category().message(errno),
                "is the agent running? `ssh-add -l` asks it");
  }
  thread_ = std::thread([this] { run(); });
}

AgentFilter::~AgentFilter() {
  stop_.write.reset();  // makes the read end readable for every poll
  thread_.join();
}

void AgentFilter::show(std::set<std::string> keys) {
  const std::lock_guard lock(mutex_);
  keys_ = std::move(keys);
}

std::string AgentFilter::last_signing_key() const {
  const std::lock_guard lock(mutex_);
  return last_signing_key_;
}

std::size_t AgentFilter::shown() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

void AgentFilter::run() {
  for (;;) {
    std::array<pollfd, 2> fds{{{listener_.get(), POLLIN, 0}, {stop_.read.get(), POLLIN, 0}}};
    if ((::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) || fds[1].revents != 0) {
      return;
    }
    if (fds[0].revents != 0) {
#ifdef SOCK_CLOEXEC
      const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
#else
      const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
      ::fcntl(client.get(), F_SETFD, FD_CLOEXEC);
#endif
      if (client) {
        serve(client.get());
      }
    }
  }
}

// Serves one client at a time, because libssh opens a new connection only after it has closed, or forgotten,
// the last one.
void AgentFilter::serve(int client) {
  const UniqueFd real = connect_local(agent_);
  if (!real) {
    return;
  }
  while (const auto request = read_agent_message(client, stop_.read.get())) {
    if (!send_agent_message(real.get(), *request)) {
      return;
    }
    auto answer = read_agent_message(real.get(), stop_.read.get());
    if (!answer) {
      return;
    }
    const std::lock_guard lock(mutex_);
    last_signing_key_ = agent_signing_key(*request).value_or(last_signing_key_);
    if (is_agent_list_request(*request)) {
      if (!keys_.empty()) {
        answer = filter_identities(*answer, keys_);
      }
      std::string_view rest = std::string_view(*answer).substr(std::min<std::size_t>(1, answer->size()));
      shown_ = take_agent_number(rest).value_or(0);
    }
    if (!send_agent_message(client, *answer)) {
      return;
    }
  }
}

KeyAgent::KeyAgent() : folder_("remote-keys-") {
  SubprocessSpec spec;
  // ssh-agent exits with the command that it runs. That command exits when its stdin is closed, which happens
  // when this process dies.
  spec.argv = {"ssh-agent", "-a", socket().string(),
               "sh",        "-c", "echo \"$SSH_AGENT_PID\"; exec cat >/dev/null"};
  spec.pipe_stdin = spec.pipe_stdout = true;
  spec.new_session = true;  // so that Ctrl-C does not reach it; we handle it
  keeper_.emplace(spec);
  std::array<char, 32> line{};
  // The line is written in one piece, so one read(2) gets all of it.
  const ssize_t count =
      uninterrupted([&] { return ::read(keeper_->stdout_fd.get(), line.data(), line.size()); });
  const auto pid =
      parse_number<pid_t>(trim({line.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))}));
  if (!pid) {
    throw Error("cannot hand keys on", "ssh-agent did not start",
                "is openssh-client installed here? ssh-agent is in it");
  }
  agent_ = *pid;
}

KeyAgent::~KeyAgent() {
  if (agent_ > 1) {
    ::kill(agent_, SIGTERM);
  }
}

bool KeyAgent::add(const std::filesystem::path& key, const Cancel& cancel) {
  SubprocessSpec spec;
  spec.argv = {"ssh-add", "-q", "--", key.string()};
  spec.set_env = {{"SSH_AUTH_SOCK", socket().string()}, {"SSH_ASKPASS_REQUIRE", "never"}, {"DISPLAY", ""}};
  spec.new_session = true;  // so that it cannot ask on the terminal
  return run_subprocess(spec, {}, cancel).status.success();
}

}  // namespace remote::ssh
