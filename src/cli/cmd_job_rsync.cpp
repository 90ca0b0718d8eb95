// `remote job-rsync`: brings the jobs' output into .remote/jobs, once or again and again.

#include <set>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "cli/job_logs.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::vector<std::string> servers;
  int delay = 0;
};

int bring(Context& context, jobs::Store& store, const Arguments& arguments) {
  std::set<std::string> names;
  for (const config::Server& server : context.servers(arguments.servers)) {
    names.insert(server.name);
  }
  std::vector<jobs::Job> jobs = stored_jobs(context, store);
  std::erase_if(jobs, [&](const jobs::Job& job) { return !names.contains(job.server); });
  const std::size_t count = jobs.size();
  const int failed = bring_logs(context, store, ask_servers(context, store, std::move(jobs)));
  if (failed == 0) {
    context.terminal.notice(count == 0 ? "no jobs"
                                       : "the output of " + counted(count, "job") + " is in .remote/jobs");
  }
  return failed;
}

int run(Context& context, const Arguments& arguments) {
  jobs::Store store = open_store(context);
  if (arguments.delay == 0) {
    return bring(context, store, arguments) == 0 ? 0 : 1;
  }
  for (;;) {
    bring(context, store, arguments);  // a server that fails now is asked again the next time
    pollfd slot{context.cancel.fd(), POLLIN, 0};
    static_cast<void>(::poll(&slot, 1, arguments.delay * 1000));
    if (context.cancel.cancelled()) {
      return 130;
    }
  }
}

}  // namespace

void add_job_rsync(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-rsync", "Bring the jobs' output into .remote/jobs");
  const auto arguments = std::make_shared<Arguments>();
  add_server_option(*command, arguments->servers);
  command->add_option("--delay", arguments->delay, "Again every N seconds, until Ctrl-C")
      ->type_name("N")
      ->check(CLI::Range(1, 86400));
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
