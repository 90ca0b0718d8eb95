#include "support/password_server.hpp"

#include <array>
#include <memory>
#include <stdexcept>

#include <arpa/inet.h>
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <poll.h>
#include <remote/exit_status.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "server/agent_command.hpp"
#include "support/test_sshd.hpp"

// Only these functions of libssh's server offer keyboard-interactive.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace remote::test {
namespace {

struct FreeBind {
  void operator()(ssh_bind bind) const { ssh_bind_free(bind); }
};
struct FreeSession {
  void operator()(ssh_session session) const { ssh_free(session); }
};
struct FreeMessage {
  void operator()(ssh_message message) const { ssh_message_free(message); }
};

// The state of one connection's login.
class Doorman {
 public:
  Doorman(const PasswordRules& rules, std::filesystem::path home, std::atomic<int>& attempts)
      : rules_(rules), home_(std::move(home)), attempts_(attempts) {}

  // True if the message logged the client in.
  bool handle(ssh_session session, ssh_message message) {
    const auto kind = static_cast<unsigned>(ssh_message_subtype(message));
    if (!rules_.banner.empty() && (!rules_.closes || kind != SSH_AUTH_METHOD_NONE)) {
      const std::unique_ptr<ssh_string_struct, void (*)(ssh_string)> text(
          ssh_string_from_char(rules_.banner.c_str()), ssh_string_free);
      ssh_send_issue_banner(session, text.get());
      if (rules_.closes) {
        ::shutdown(ssh_get_fd(session), SHUT_WR);
        return false;
      }
      while (rules_.opened && !*rules_.opened) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // poll interval
      }
      return rules_.opened && answer(message, true);
    }
    ssh_message_auth_set_methods(message, methods());
    if (kind == SSH_AUTH_METHOD_NONE && rules_.open) {
      return answer(message, true);
    }
    if (kind == SSH_AUTH_METHOD_PUBLICKEY && (rules_.real || (rules_.all && !key_accepted_))) {
      return handle_key(message);
    }
    if (rules_.all && !key_accepted_) {
      ssh_message_reply_default(message);
      return false;
    }
    if (kind == SSH_AUTH_METHOD_PASSWORD && !rules_.password.empty()) {
      ++attempts_;
      return answer(message, rules_.password == ssh_message_auth_password(message));
    }
    if (kind == SSH_AUTH_METHOD_INTERACTIVE && !rules_.prompts.empty()) {
      if (ssh_message_auth_kbdint_is_response(message) == 0) {
        std::vector<const char*> prompts;
        std::vector<char> echo;
        for (std::size_t i = 0; i < rules_.prompts.size(); ++i) {
          prompts.push_back(rules_.prompts[i].c_str());
          echo.push_back(rules_.echo.at(i) ? 1 : 0);
        }
        ssh_message_auth_interactive_request(message, "", "", static_cast<unsigned>(prompts.size()),
                                             prompts.data(), echo.data());
        return false;
      }
      ++attempts_;
      bool right = ssh_userauth_kbdint_getnanswers(session) == static_cast<int>(rules_.answers.size());
      for (std::size_t i = 0; right && i < rules_.answers.size(); ++i) {
        right = rules_.answers[i] == ssh_userauth_kbdint_getanswer(session, static_cast<unsigned>(i));
      }
      return answer(message, right);
    }
    ssh_message_reply_default(message);
    return false;
  }

 private:
  int methods() const {
    if (rules_.all && !key_accepted_) {
      return static_cast<int>(SSH_AUTH_METHOD_PUBLICKEY);
    }
    int methods = 0;
    methods |= rules_.password.empty() ? 0 : static_cast<int>(SSH_AUTH_METHOD_PASSWORD);
    methods |= rules_.prompts.empty() ? 0 : static_cast<int>(SSH_AUTH_METHOD_INTERACTIVE);
    methods |= rules_.real ? static_cast<int>(SSH_AUTH_METHOD_PUBLICKEY) : 0;
    return methods;
  }
  bool handle_key(ssh_message message) {
    char* text = nullptr;
    if (ssh_pki_export_pubkey_base64(ssh_message_auth_pubkey(message), &text) != SSH_OK) {
      return answer(message, false);
    }
    const std::string blob = text;
    ssh_string_free_char(text);
    const auto known = read_file_if_there(home_ / ".ssh/authorized_keys");
    const bool there = known && known->find(" " + blob) != std::string::npos;
    const ssh_publickey_state_e state = ssh_message_auth_publickey_state(message);
    if (there && state == SSH_PUBLICKEY_STATE_NONE) {  // the client only asks whether the key is acceptable
      ssh_message_auth_reply_pk_ok_simple(message);
      return false;
    }
    const bool right = there && state == SSH_PUBLICKEY_STATE_VALID;
    if (right && rules_.all) {
      key_accepted_ = true;
      ssh_message_auth_set_methods(message, methods());
      ssh_message_auth_reply_success(message, 1);
      return false;
    }
    return answer(message, right);
  }
  static bool answer(ssh_message message, bool right) {
    if (right) {
      ssh_message_auth_reply_success(message, 0);
    } else {
      ssh_message_reply_default(message);
    }
    return right;
  }
  const PasswordRules& rules_;
  std::filesystem::path home_;
  std::atomic<int>& attempts_;
  bool key_accepted_ = false;
};

void write_all_to(ssh_channel channel, const std::string& text, bool err) {
  const auto size = static_cast<std::uint32_t>(text.size());
  if (err) {
    ssh_channel_write_stderr(channel, text.data(), size);
  } else {
    ssh_channel_write(channel, text.data(), size);
  }
}

// Whether a request to the agent is complete: a line with a size, then that many bytes.
bool is_agent_request(const std::string& input) {
  const std::size_t line = input.find('\n');
  return line != std::string::npos && input.size() >= line + 1 + std::stoul(input);
}

// The output of an agent after its installation.
std::string without_agent_needed(const std::string& out) {
  const std::size_t here = out.find(server::agent_here);
  return here == std::string::npos ? out : "\n" + out.substr(here);
}

// Runs a command after all of its input has arrived. Gives it the agent if it needs that.
void run_really(ssh_channel channel, const std::string& command, const std::filesystem::path& home) {
  const bool agent = command == server::agent_command();
  std::string input;
  std::array<char, 4096> piece{};
  for (int count = 0; (count = ssh_channel_read(channel, piece.data(), piece.size(), 0)) > 0;) {
    input.append(piece.data(), static_cast<std::size_t>(count));
    if (agent && is_agent_request(input)) {
      break;
    }
  }
  SubprocessSpec spec;
  // An agent treats the end of its input as a disconnected client, so stdin stays open for a second.
  spec.argv = {"sh", "-c", agent ? "{ cat; sleep 1; } | { " + command + "\n}" : command};
  spec.directory = home;
  spec.set_env["HOME"] = home.string();
  ExecResult result = run_subprocess(spec, input);
  if (const std::size_t needed = result.out.find(server::agent_needed);
      agent && needed != std::string::npos) {
    const auto need = server::parse_agent_need(trim(std::string_view(result.out).substr(needed))).value();
    const server::Agent* found = server::find_agent(need.architecture);
    result = run_subprocess(spec, input + server::agent_installation(*found, need.has_xz) + input);
    result.out = without_agent_needed(result.out);
  }
  write_all_to(channel, result.out, false);
  write_all_to(channel, result.err, true);
  ssh_channel_request_send_exit_status(channel, result.status.shell_code());
}

}  // namespace

PasswordServer::PasswordServer(PasswordRules rules)
    : rules_(std::move(rules)), folder_("remote-password-"), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
  make_key(folder_.path() / "host_key");
  make_folders(home());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.get(), 32) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen");
  }
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept_loop(); });
}

PasswordServer::~PasswordServer() {
  stop_ = true;
  accepting_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : connections_) {
      ::shutdown(fd, SHUT_RDWR);
    }
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
  for (const int fd : connections_) {
    ::close(fd);
  }
}

config::Server PasswordServer::server(const std::string& name, const std::string& user) const {
  config::Server server;
  server.name = name;
  server.hostname = "127.0.0.1";
  server.port = port_;
  server.username = user;
  return server;
}

void PasswordServer::accept_loop() {
  while (!stop_) {
    pollfd slot{listener_.get(), POLLIN, 0};
    if (::poll(&slot, 1, 20) <= 0) {
      continue;
    }
    const int fd = ::accept(listener_.get(), nullptr, nullptr);
    if (fd >= 0) {
      const std::lock_guard lock(mutex_);
      connections_.push_back(::dup(fd));  // a duplicate fd, so that a reused number is never shut down
      threads_.emplace_back([this, fd] { serve(fd); });
    }
  }
}

void PasswordServer::serve(int fd) {
  const std::unique_ptr<ssh_bind_struct, FreeBind> bind(ssh_bind_new());
  const std::unique_ptr<ssh_session_struct, FreeSession> session(ssh_new());
  const bool no = false;
  ssh_bind_options_set(bind.get(), SSH_BIND_OPTIONS_PROCESS_CONFIG, &no);
  ssh_bind_options_set(bind.get(), SSH_BIND_OPTIONS_HOSTKEY, (folder_.path() / "host_key").c_str());
  if (ssh_bind_accept_fd(bind.get(), session.get(), fd) != SSH_OK ||
      ssh_handle_key_exchange(session.get()) != SSH_OK) {
    return;
  }
  Doorman doorman(rules_, home(), attempts_);
  bool inside = false;
  std::string user;
  ssh_channel channel = nullptr;
  for (;;) {
    const std::unique_ptr<ssh_message_struct, FreeMessage> message(ssh_message_get(session.get()));
    if (!message) {
      break;
    }
    const int type = ssh_message_type(message.get());
    if (type == SSH_REQUEST_AUTH) {
      const char* name = ssh_message_auth_user(message.get());
      user = name != nullptr ? name : user;  // answers to prompts have no user name
      inside = doorman.handle(session.get(), message.get()) || inside;
    } else if (inside && type == SSH_REQUEST_CHANNEL_OPEN) {
      channel = ssh_message_channel_request_open_reply_accept(message.get());
    } else if (channel != nullptr && type == SSH_REQUEST_CHANNEL) {
      const char* asked = ssh_message_channel_request_command(message.get());
      const std::string command = asked != nullptr ? asked : "";
      ssh_message_channel_request_reply_success(message.get());
      if (rules_.real) {
        run_really(channel, command, home());
      } else {
        write_all_to(channel, "welcome " + user + "\n", false);
        ssh_channel_request_send_exit_status(channel, 0);
      }
      ssh_channel_send_eof(channel);
      ssh_channel_close(channel);
    } else {
      ssh_message_reply_default(message.get());
    }
  }
}

}  // namespace remote::test
