#include "ssh/key_agent.hpp"

#include <cerrno>
#include <csignal>
#include <string>

#include <remote/error.hpp>
#include <unistd.h>

#include "base/strings.hpp"

namespace remote::ssh {

KeyAgent::KeyAgent() : folder_("remote-keys-") {
  SubprocessSpec spec;
  // The agent ends with the command that it is given, and that ends with us: when its stdin does.
  spec.argv = {"ssh-agent", "-a", socket().string(),
               "sh",        "-c", "echo \"$SSH_AGENT_PID\"; exec cat >/dev/null"};
  spec.pipe_stdin = spec.pipe_stdout = true;
  spec.new_session = true;  // Ctrl-C is ours to handle
  keeper_.emplace(spec);
  std::string line;
  char c = 0;
  for (;;) {
    const ssize_t count = ::read(keeper_->stdout_fd.get(), &c, 1);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (count <= 0 || c == '\n') {
      break;
    }
    line += c;
  }
  const auto pid = parse_number<pid_t>(line);
  if (!pid) {
    throw Error("cannot hand keys on", "ssh-agent did not start");
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
  spec.new_session = true;  // no terminal to ask on
  return run_subprocess(spec, {}, cancel).status.success();
}

}  // namespace remote::ssh
