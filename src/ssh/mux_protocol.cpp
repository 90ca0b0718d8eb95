#include "ssh/mux_protocol.hpp"

#include <fmt/format.h>
#include <remote/error.hpp>

#include "ssh/agent.hpp"

namespace remote::ssh::mux {
namespace {

enum : std::uint32_t {
  msg_hello = 1,
  c_new_session = 0x10000002,
  c_alive_check = 0x10000004,
  c_terminate = 0x10000005,
  c_open_forward = 0x10000006,
  c_close_forward = 0x10000007,
  c_new_stdio_forward = 0x10000008,
  c_stop_listening = 0x10000009,
  s_ok = 0x80000001,
  s_permission_denied = 0x80000002,
  s_failure = 0x80000003,
  s_exit_message = 0x80000004,
  s_alive = 0x80000005,
  s_session_opened = 0x80000006,
};

constexpr std::uint32_t reverse_forward = 2;
constexpr std::uint32_t is_local_socket = 0xfffffffe;  // replaces the port

// No typed key should be interpreted as the client's escape character.
constexpr std::uint32_t no_escape = 0xffffffff;

std::string number(std::uint32_t value) {
  return agent_number(value);
}

std::string text(std::string_view value) {
  return number(static_cast<std::uint32_t>(value.size())).append(value);
}

std::string whole(const std::string& body) {
  return number(static_cast<std::uint32_t>(body.size())) + body;
}

std::string reverse(std::uint32_t type, std::uint32_t request, const Listening& at, std::string_view socket) {
  const auto port = at.path.empty() ? static_cast<std::uint32_t>(at.port) : is_local_socket;
  return whole(number(type) + number(request) + number(reverse_forward) +
               text(at.path.empty() ? "127.0.0.1" : at.path) + number(port) + text(socket) +
               number(is_local_socket));
}

[[noreturn]] void not_a_master(std::string_view why) {
  throw Error("cannot use the control socket", fmt::format("an OpenSSH master does not say this: {}", why),
              "close it with `ssh -O exit`");
}

std::uint32_t need_number(std::string_view& body) {
  const auto value = take_agent_number(body);
  if (!value) {
    not_a_master("a message ends too early");
  }
  return *value;
}

std::string need_text(std::string_view& body) {
  const std::uint32_t size = need_number(body);
  if (size > body.size()) {
    not_a_master("a text is longer than its message");
  }
  std::string value(body.substr(0, size));
  body.remove_prefix(size);
  return value;
}

Message parse(std::string_view body) {
  Message message;
  const std::uint32_t type = need_number(body);
  const auto take = [&](Kind kind, bool has_number) {
    message.kind = kind;
    message.about = need_number(body);
    message.number = has_number ? need_number(body) : 0;
  };
  switch (type) {
    case msg_hello:
      message.kind = Kind::hello;
      message.number = need_number(body);
      return message;  // extensions may follow
    case s_ok:
      take(Kind::ok, false);
      break;
    case s_alive:
      take(Kind::alive, true);
      break;
    case s_session_opened:
      take(Kind::opened, true);
      break;
    case s_exit_message:
      take(Kind::exited, true);
      break;
    case s_permission_denied:
    case s_failure:
      take(Kind::refused, false);
      message.text = need_text(body);
      break;
    default:
      return message;
  }
  if (!body.empty()) {
    not_a_master("a message is longer than its kind");
  }
  return message;
}

}  // namespace

std::string hello() {
  return whole(number(msg_hello) + number(version));
}

std::string alive_check(std::uint32_t request) {
  return whole(number(c_alive_check) + number(request));
}

std::string terminate(std::uint32_t request) {
  return whole(number(c_terminate) + number(request));
}

std::string stop_listening(std::uint32_t request) {
  return whole(number(c_stop_listening) + number(request));
}

std::string new_session(std::uint32_t request, std::string_view command) {
  // After the reserved text come the flags for a terminal, X11, the agent and a subsystem, and the type of
  // the terminal.
  return whole(number(c_new_session) + number(request) + text({}) + number(0) + number(0) + number(0) +
               number(0) + number(no_escape) + text({}) + text(command));
}

std::string new_stdio_forward(std::uint32_t request, std::string_view host, int port) {
  return whole(number(c_new_stdio_forward) + number(request) + text({}) + text(host) +
               number(static_cast<std::uint32_t>(port)));
}

std::string open_reverse(std::uint32_t request, const Listening& at, std::string_view socket) {
  return reverse(c_open_forward, request, at, socket);
}

std::string close_reverse(std::uint32_t request, const Listening& at, std::string_view socket) {
  return reverse(c_close_forward, request, at, socket);
}

std::optional<Message> take_message(std::string& data) {
  std::string_view rest = data;
  const auto size = take_agent_number(rest);
  if (!size) {
    return std::nullopt;
  }
  if (*size < 4 || *size > longest_message) {
    not_a_master(fmt::format("a message of {} bytes", *size));
  }
  if (rest.size() < *size) {
    return std::nullopt;
  }
  Message message = parse(rest.substr(0, *size));
  data.erase(0, 4 + *size);
  return message;
}

}  // namespace remote::ssh::mux
