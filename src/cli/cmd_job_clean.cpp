// `remote job-clean`: removes ended jobs, here and on the servers.

#include <algorithm>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "jobs/clean.hpp"
#include "jobs/select.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::vector<std::string> keys;
  std::vector<std::string> tags;
  std::optional<double> older;
  bool yes = false;
};

// What is chosen, split: those that have ended are returned, the others told of. `left` counts what was named
// or not known and stays.
std::vector<jobs::Job> ended_ones(Context& context, const Arguments& arguments, std::vector<jobs::Job> chosen,
                                  int& left) {
  std::size_t unfinished = 0;
  const std::int64_t now = now_seconds();
  std::vector<jobs::Job> ended;
  for (jobs::Job& job : chosen) {
    if (!jobs::is_final(job.state)) {
      if (!arguments.keys.empty() || job.state == jobs::State::unknown) {
        context.terminal.warning(fmt::format("{} stays: it is {}", describe(job), state_text(job)));
        ++left;
      } else {
        ++unfinished;
      }
      continue;
    }
    const std::int64_t end = job.ended_at.value_or(job.checked_at.value_or(job.created_at));
    if (!arguments.older || static_cast<double>(now - end) >= *arguments.older * 86400) {
      ended.push_back(std::move(job));
    }
  }
  if (unfinished > 0) {
    context.terminal.notice(fmt::format("{} left alone", counted(unfinished, "unfinished job")));
  }
  return ended;
}

int run(Context& context, const Arguments& arguments) {
  jobs::Store store = open_store(context);
  JobSelection selection;
  selection.names = arguments.keys;
  selection.tags = arguments.tags;
  // What runs as far as is known here may have ended meanwhile.
  std::vector<jobs::Job> chosen =
      ask_servers(context, store, jobs::select(stored_jobs(context, store), selection));
  int left = 0;
  chosen = ended_ones(context, arguments, std::move(chosen), left);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  std::size_t removed = 0;
  if (!chosen.empty()) {
    if (!arguments.yes) {
      const std::string what =
          fmt::format("{} with {} output, here and on the servers", counted(chosen.size(), "ended job"),
                      chosen.size() == 1 ? "its" : "their");
      confirm(context, chosen, fmt::format("Remove {}?", what), "nothing was removed",
              Error::usage("job-clean", "that would remove " + what, "add --yes"));
    }
    const jobs::CleanResult result =
        jobs::clean(context.config(), store, context.connector(), chosen, context.cancel);
    context.show_new_host_keys();
    for (const auto& [job, reply] : result.entries) {
      if (reply.gone()) {
        ++removed;
      } else {
        context.terminal.warning(fmt::format("{} stays: {}", describe(job), reply.reason));
        ++left;
      }
      all.push_back({{"key", job.key},
                     {"id", job.id.text()},
                     {"server", job.server},
                     {"removed", reply.gone()},
                     {"reason", reply.reason}});
    }
    for (const Error& error : result.errors) {
      context.show(error);
      ++left;
    }
  }
  if (context.options.json) {
    context.terminal.out(dump_json(all));
  } else {
    context.terminal.notice((removed == 0 ? "no jobs" : counted(removed, "job")) + " removed");
  }
  return left == 0 ? 0 : 1;
}

}  // namespace

void add_job_clean(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-clean", "Remove ended jobs, here and on the servers");
  const auto arguments = std::make_shared<Arguments>();
  add_job_option(*command, arguments->keys);
  add_tag_option(*command, arguments->tags, "Jobs with this tag; with several, jobs that have all");
  command->add_option("--older", arguments->older, "Only jobs that ended this many days ago or earlier")
      ->type_name("DAYS")
      ->check(CLI::Range(0.0, 100000.0));
  command->add_flag("--yes", arguments->yes, "Do not ask before removing");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
