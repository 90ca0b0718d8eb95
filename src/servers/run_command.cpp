#include "servers/run_command.hpp"

#include <limits>
#include <string_view>

#include <remote/error.hpp>

#include "base/login_shell.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "scripts/scripts.hpp"

namespace remote::servers {
namespace {

// The command's output begins behind this; run.sh prints it to both streams.
constexpr std::string_view begin_mark = "\n@remote1 run\n";
constexpr std::size_t max_greeting = std::size_t{1} << 20U;

// One stream without what the login shell's start files print before the command.
class Stream {
 public:
  // The part of `data` that is the command's.
  std::string_view take(std::string_view data) {
    if (begun_) {
      return data;
    }
    const std::size_t before = greeting_.size();
    // The mark may have come in part already.
    const std::size_t from = before < begin_mark.size() ? 0 : before - begin_mark.size();
    greeting_ += data;
    const std::size_t at = greeting_.find(begin_mark, from);
    if (at == std::string::npos) {
      if (greeting_.size() > max_greeting) {
        throw Error("cannot run the command", "the server's login shell prints without end",
                    "look at what its start files print");
      }
      return {};
    }
    begun_ = true;
    const std::size_t end = at + begin_mark.size() - before;
    greeting_.resize(at);
    return data.substr(end);
  }
  bool begun() const { return begun_; }
  const std::string& greeting() const { return greeting_; }

 private:
  bool begun_ = false;
  std::string greeting_;
};

}  // namespace

std::string guarded_script(std::string_view script) {
  std::string text = "{\n";
  text += scripts::text("guard.sh");
  text += script;
  return text + "\n}\n";
}

std::string run_script(const RunCommand& command) {
  std::string text = "project=" + remote_path_word(command.project) + "\n";
  text += "command=" + shell_quote(command.command) + "\n";
  text += "enter() {\n:\n";
  for (const auto& [name, value] : command.env) {
    check_variable(name);
    text += "export " + name + "=" + shell_quote(value) + "\n";
  }
  text += command.activate;
  text += "\n}\n";
  text += scripts::text("run.sh");
  return guarded_script(text);
}

ExitStatus run_command(ssh::Connection& connection, const RunCommand& command, const ssh::Sink& sink,
                       const Cancel& cancel) {
  Stream out;
  Stream err;
  ssh::ExecRequest request;
  request.input = run_script(command);
  request.keep_input = true;
  request.max_output = std::numeric_limits<std::size_t>::max();  // it is passed on as it comes
  request.sink = [&](ssh::Stream which, std::string_view data) {
    data = (which == ssh::Stream::out ? out : err).take(data);
    if (!data.empty()) {
      sink(which, data);
    }
  };
  const ExitStatus status = connection.exec(request, cancel).status;
  if (!out.begun()) {
    const std::string said = last_lines(trim(err.greeting()), 3);
    throw login_shell_ended(status.describe() + (said.empty() ? "" : ": " + said));
  }
  return status;
}

}  // namespace remote::servers
