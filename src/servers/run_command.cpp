#include "servers/run_command.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "base/shell_quote.hpp"
#include "scripts/scripts.hpp"

namespace remote::servers {

std::string run_script(const RunCommand& command) {
  // Not ssh::wrap_script: the script's stdin is how the server learns that we are gone (see run.sh).
  std::string text = "{\n";
  text += "project=" + remote_path_word(command.project) + "\n";
  text += "command=" + shell_quote(command.command) + "\n";
  text += "enter() {\n:\n";
  for (const auto& [name, value] : command.env) {
    text += "export " + name + "=" + shell_quote(value) + "\n";
  }
  text += command.activate;
  text += "\n}\n";
  text += scripts::text("run.sh");
  text += "}\n";
  return text;
}

ExitStatus run_command(ssh::Connection& connection, const RunCommand& command, const ssh::Sink& sink,
                       const Cancel& cancel) {
  const std::string script = run_script(command);
  std::string_view input = script;
  const std::unique_ptr<ssh::Channel> channel = connection.open("exec sh -s", sink);
  while (!channel->finished()) {
    const std::size_t count = std::min(input.size(), channel->writable());
    if (count > 0) {
      channel->write(input.substr(0, count));
      input.remove_prefix(count);
    }
    std::array<pollfd, 1> also{{{cancel.fd(), POLLIN, 0}}};
    connection.pump(std::chrono::milliseconds(60000), also);
    cancel.check();
  }
  if (!channel->status()) {
    throw Error("connection lost", "the server closed it before the command ended");
  }
  return *channel->status();
}

}  // namespace remote::servers
