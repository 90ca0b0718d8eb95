// `remote job-clean`: removes ended jobs, here and on the servers.

#include <algorithm>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options.hpp"
#include "cli/show/job_words.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  JobOptions jobs;
  std::optional<double> older;
  bool yes = false;
};

// What is chosen, split: those that have ended are returned, the others told of. `left` counts what was named
// or not known and stays.
std::vector<Job> ended_ones(Context& context, const Arguments& arguments, std::vector<Job> chosen,
                            int& left) {
  std::size_t unfinished = 0;
  const std::int64_t now = now_seconds();
  std::vector<Job> ended;
  for (Job& job : chosen) {
    if (!is_final(job.state)) {
      if (!arguments.jobs.keys.empty() || job.state == JobState::unknown) {
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
    context.terminal.notice(counted(unfinished, "unfinished job") + " left alone");
  }
  return ended;
}

int run(Context& context, const Arguments& arguments) {
  // What runs as far as is known here may have ended meanwhile.
  std::vector<Job> chosen = context.project().jobs({.selection = arguments.jobs.selection()});
  int left = 0;
  chosen = ended_ones(context, arguments, std::move(chosen), left);
  CleanResult result;
  if (!chosen.empty()) {
    if (!arguments.yes) {
      const std::string what =
          fmt::format("{} with {} output, here and on the servers", counted(chosen.size(), "ended job"),
                      chosen.size() == 1 ? "its" : "their");
      context.confirm(chosen, fmt::format("Remove {}?", what), "nothing was removed",
                      Error::usage("job-clean", "that would remove " + what, "add --yes"));
    }
    result = context.project().clean(chosen);
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  std::size_t removed = 0;
  for (const CleanResult::Entry& entry : result.entries) {
    const Job& job = entry.job;
    if (entry.removed) {
      ++removed;
    } else {
      context.terminal.warning(fmt::format("{} stays: {}", describe(job), visible_line(entry.reason)));
      ++left;
    }
    all.push_back({{"key", job.key},
                   {"id", job.id.text()},
                   {"server", job.server},
                   {"removed", entry.removed},
                   {"reason", entry.reason}});
  }
  context.show(result.errors);
  left += static_cast<int>(result.errors.size());
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
  arguments->jobs.add(*command, context);
  command->add_option("--older", arguments->older, "Only jobs that ended this many days ago or earlier")
      ->type_name("DAYS")
      ->check(CLI::Range(0.0, 100000.0));
  command->add_flag("--yes", arguments->yes, "Do not ask before removing");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
