#include "cli/commands/at_end.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/ranges.hpp"
#include "base/subprocess.hpp"

namespace remote::cli {

void AtEnd::add(CLI::App& command) {
  command
      .add_option("--notify", command_,
                  "Command to run here at the end, a line for sh; REMOTE_STATE is succeeded or failed")
      ->type_name("CMD");
  command.add_flag("--bell", bell_, "Ring the terminal's bell at the end");
}

void AtEnd::tell(Context& context, const std::vector<Job>& jobs, bool succeeded) const {
  if (bell_ && context.terminal.stderr_is_terminal()) {
    context.terminal.err("\a");
  }
  if (!command_) {
    return;
  }
  std::vector<int> keys;
  std::ranges::transform(jobs, std::back_inserter(keys), &Job::key);
  SubprocessSpec spec;
  spec.argv = {"sh", "-c", *command_};
  spec.set_env = {{"REMOTE_STATE", succeeded ? "succeeded" : "failed"}, {"REMOTE_JOBS", ranges(keys)}};
  const ExitStatus status = Subprocess(spec).wait();
  if (!status.success()) {
    context.terminal.warning(fmt::format("the command of --notify failed ({})", status.describe()));
  }
}

}  // namespace remote::cli
