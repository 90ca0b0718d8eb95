#include "cli/commands/commands.hpp"

namespace remote::cli {

const std::vector<AddCommand>& commands() {
  // A line each, so that a new command is one line.
  // clang-format off
  static const std::vector<AddCommand> table = {
      add_init,
      add_servers,
      add_setup,
      add_rsync,
      add_update_packages,
      add_prepare,
      add_run,
      add_job_run,
      add_launch,
      add_job_list,
      add_job_tail,
      add_job_kill,
      add_job_rsync,
      add_job_wait,
      add_authorize,
      add_job_clean,
      add_job_pull,
      add_job_stacks,
      add_sandbox,
      add_completion,
      add_complete,
  };
  // clang-format on
  return table;
}

}  // namespace remote::cli
