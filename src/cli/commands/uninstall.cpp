// `remote uninstall`: removes everything that remote has installed on the servers.

#include <algorithm>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/error_json.hpp"
#include "cli/show/waiting.hpp"

namespace remote::cli {
namespace {

using Leftover = UninstallResult::Leftover;

struct UninstallArguments {
  UninstallRequest request;
  bool yes = false;
};

struct ReasonWords {
  const char* name;
  const char* text;
};

ReasonWords words_of(Leftover::Reason reason) {
  switch (reason) {
    case Leftover::Reason::failed:
      return {"failed", "it could not be removed"};
    case Leftover::Reason::link:
      return {"link", "it is a symbolic link"};
    case Leftover::Reason::foreign:
      return {"foreign", "it belongs to another user"};
    case Leftover::Reason::unknown:
      return {"unknown", "remote did not create it"};
    case Leftover::Reason::recent:
      return {"recent", "another command may be installing it; try again in a minute"};
    case Leftover::Reason::unfinished:
      return {"unfinished", "jobs without a result may use it on another machine; `remote job-clean` first"};
    case Leftover::Reason::unmoved:
      return {"unmoved", "it has files of frozen launches that could not be moved to the project"};
    case Leftover::Reason::lease:
      return {"lease", "a lease that is in use or ended less than a minute ago"};
    case Leftover::Reason::results:
      return {"results", "it has results of jobs; `remote job-clean` removes them"};
  }
  return {"failed", ""};
}

Error refusal(const UninstallResult& result) {
  std::vector<std::string> jobs;
  for (const UninstallResult::RunningJob& job : result.running) {
    std::string text = job.id ? job.id->text().substr(0, 8) : "a lifeline";
    text += job.pid ? fmt::format(" (pid {})", *job.pid) : "";
    jobs.push_back(text + (job.project.empty() ? "" : " of " + job.project));
  }
  const bool is_one = jobs.size() == 1;
  return Error(
             "cannot uninstall",
             fmt::format("{} there: {}", is_one ? "a job of yours runs" : "jobs of yours run", some_of(jobs)),
             fmt::format("stop {} with `remote job-kill` in {}, or wait", is_one ? "it" : "them",
                         is_one ? "its project" : "their projects"))
      .on(result.server);
}

bool has_failed(const UninstallResult& result, bool dry_run) {
  return result.error || !result.running.empty() ||
         (!dry_run && std::ranges::any_of(result.left, &Leftover::counts));
}

void show_left(Context& context, const UninstallResult& result) {
  for (const Leftover& leftover : result.left) {
    const std::string line =
        fmt::format("{}: {}: {}", result.server, leftover.path, words_of(leftover.reason).text);
    if (leftover.counts()) {
      context.terminal.warning("not removed: " + line);
    } else {
      context.terminal.notice("kept: " + line);
    }
  }
}

nlohmann::ordered_json uninstall_json(const UninstallResult& result, bool dry_run) {
  nlohmann::ordered_json entry = {{"server", result.server},
                                  {"ok", !has_failed(result, dry_run)},
                                  {dry_run ? "found" : "removed", result.removed},
                                  {"left", nlohmann::json::array()},
                                  {"running", nlohmann::json::array()}};
  for (const Leftover& leftover : result.left) {
    entry["left"].push_back({{"path", leftover.path}, {"reason", words_of(leftover.reason).name}});
  }
  for (const UninstallResult::RunningJob& job : result.running) {
    entry["running"].push_back({{"id", or_null(job.id ? job.id->text() : "")},
                                {"pid", job.pid ? nlohmann::json(*job.pid) : nlohmann::json()},
                                {"project", or_null(job.project)}});
  }
  put_error(entry, result.error);
  return entry;
}

std::vector<UninstallResult> call_uninstall(Context& context, const UninstallRequest& request) {
  const std::size_t count = context.project().server_names(request.servers).size();
  const Waiting waiting(context.terminal, "for " + counted(count, "server"));
  return context.project().uninstall(request);
}

// Shows the servers that failed. Returns the exit code.
int finish_uninstall(Context& context, const std::vector<UninstallResult>& results, bool dry_run) {
  std::vector<Error> errors = errors_of(results);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const UninstallResult& result : results) {
    if (!result.running.empty()) {
      errors.push_back(refusal(result));
    }
    all.push_back(uninstall_json(result, dry_run));
  }
  context.show(errors);
  if (context.options.json) {
    context.print(all);
  }
  const auto failed = std::ranges::count_if(
      results, [&](const UninstallResult& result) { return has_failed(result, dry_run); });
  if (failed > 0 && results.size() > 1) {
    context.terminal.notice(fmt::format("failed on {} of {} servers", failed, results.size()));
  }
  return failed > 0 ? 1 : 0;
}

// Lists what would be removed: on stdout for a dry run, otherwise on stderr before the question.
void show_found(Context& context, const std::vector<UninstallResult>& results, bool dry_run) {
  for (const UninstallResult& result : results) {
    for (const std::string& path : result.removed) {
      const std::string line = fmt::format("{}: {}\n", result.server, path);
      if (!dry_run) {
        context.terminal.err("  " + line);
      } else if (!context.options.json) {
        context.terminal.out(line);
      }
    }
    if (dry_run) {
      show_left(context, result);
    }
  }
}

// Asks before removing anything. Returns the exit code if there is nothing to remove.
std::optional<int> ask_to_uninstall(Context& context, UninstallRequest request) {
  request.dry_run = true;
  const std::vector<UninstallResult> results = call_uninstall(context, request);
  const auto count = static_cast<std::size_t>(std::ranges::count_if(
      results, [](const UninstallResult& result) { return !result.error && result.running.empty(); }));
  if (count == 0) {
    return finish_uninstall(context, results, true);
  }
  show_found(context, results, false);
  const std::string what = "what remote has installed on " + counted(count, "server");
  context.confirm({}, fmt::format("Remove {}?", what), "nothing was removed",
                  Error::usage("uninstall", "that would remove " + what, "add --yes"));
  return std::nullopt;
}

int run_uninstall(Context& context, const UninstallArguments& arguments) {
  if (arguments.request.dry_run) {
    const std::vector<UninstallResult> results = call_uninstall(context, arguments.request);
    show_found(context, results, true);
    return finish_uninstall(context, results, true);
  }
  if (!arguments.yes) {
    if (const auto code = ask_to_uninstall(context, arguments.request)) {
      return *code;
    }
  }
  const std::vector<UninstallResult> results = call_uninstall(context, arguments.request);
  bool is_removed = false;
  for (const UninstallResult& result : results) {
    show_left(context, result);
    if (result.error || !result.running.empty()) {
      continue;
    }
    is_removed = true;
    if (!context.options.json) {
      context.terminal.out(fmt::format("{}: {} removed{}\n", result.server,
                                       counted(result.removed.size(), "folder"),
                                       result.left.empty() ? "; nothing of remote is left" : ""));
    }
  }
  const int code = finish_uninstall(context, results, false);
  if (is_removed) {
    context.terminal.notice(
        "kept: the project's files, its Python environment, and the folders of its jobs (`remote job-clean` "
        "removes these)");
  }
  return code;
}

}  // namespace

void add_uninstall(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_uninstall);
  add_server_option(command, context, arguments.request.servers);
  command.add_flag("-n,--dry-run", arguments.request.dry_run,
                   "Show what would be removed, and remove nothing");
  command.add_flag("-y,--yes", arguments.yes, "Do not ask");
}

}  // namespace remote::cli
