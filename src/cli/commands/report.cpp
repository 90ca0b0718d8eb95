// `remote report`: writes an HTML page about a launch, a job, or several launches.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <tuple>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <remote/history.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/commands/ends.hpp"
#include "cli/options.hpp"
#include "cli/report/page.hpp"
#include "cli/show/launches.hpp"

namespace remote::cli {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  JobOptions jobs;
  std::string out;
  bool offline = false;
  bool watch = false;
};

// The named launch, or the newest one; a single job if it is named, or in the absence of launches.
std::vector<Job> choose_launch(Project& project, const JobOptions& options) {
  const std::vector<Job> found = project.jobs({.selection = options.selection(), .some = true, .ask = false});
  const Job newest = options.named() ? found.front() : found.back();
  std::vector<Job> chosen = newest.launch ? project.with_launch({newest}) : std::vector<Job>{newest};
  for (const Job& job : found) {
    if (options.named() && job.id != newest.id && (!newest.launch || job.launch != newest.launch)) {
      throw Error::usage("remote report", "several jobs are named",
                         "a report is about one job, or about launches: --launch KEY");
    }
  }
  return chosen;
}

// The default folder for pages: next to the jobs' output, and never sent by rsync.
fs::path reports_folder(Project& project) {
  project.require_trust();  // the folder may be a link that leads out of the project
  fs::path folder = project.folder() / ".remote" / "reports";
  make_folders(folder, 0700);
  return folder;
}

fs::path write_page(Context& context, const ReportArguments& arguments, const nlohmann::ordered_json& data,
                    const Report& report) {
  const bool given = !arguments.out.empty();
  const Job& first = report.jobs.front();
  fs::path file = given ? absolute_path(expand_home(arguments.out))
                        : reports_folder(context.project()) /
                              fmt::format("{}-{}.html", first.launch ? "launch" : "job", first.key);
  write_file_atomic(file, report_page(data, report), 0600);  // contains variables and output
  return file;
}

// Rewrites the page regularly until the launch ends, or Ctrl-C. The last page no longer reloads itself.
int watch(Context& context, const ReportArguments& arguments, ReportRequest request) {
  constexpr std::chrono::seconds every{3};
  Project& project = context.project();
  std::optional<Report> report;
  const auto write = [&](bool again) {
    return write_page(context, arguments, report_json(*report, project.name(), again), *report);
  };
  const auto ended = [](const Job& job) { return is_final(job.state); };
  try {
    for (bool first = true;; first = false) {
      report = project.report(request);
      request.jobs = report->jobs;
      const bool running = !std::ranges::all_of(report->jobs, ended);
      const fs::path file = write(running);
      if (first && context.stream) {
        context.print({{"file", file.string()}});
      } else if (first) {
        context.terminal.out(file.string() + "\n");
      }
      if (!running) {
        return 0;
      }
      if (first) {
        context.terminal.notice(
            "open it in a browser: it reloads itself; Ctrl-C ends this command, and no job");
      }
      context.pause(every);
    }
  } catch (const Interrupted&) {
    if (report) {
      write(false);
      context.when_interrupted = "stopped watching; the page has the last state, and the ranks keep running";
    }
    throw;
  }
}

// The named launches, if there are several: by key or name, or by tags.
std::vector<PastLaunch> several_launches(Context& context, const JobOptions& options) {
  constexpr std::size_t most = 32;
  const History history(context.project().folder());
  std::vector<std::string> names = options.launches;
  names.insert(names.end(), options.words.begin(), options.words.end());
  if (!options.by_name() && !options.tags.empty()) {
    for (const LaunchSummary& launch : history.list({.tags = options.tags})) {
      names.push_back(launch.id.text());
    }
    if (names.size() > most) {
      context.terminal.notice(fmt::format("the newest {} of {} launches", most, names.size()));
      names.resize(most);
    }
  }
  std::vector<PastLaunch> launches;
  for (const std::string& name : names.size() > 1 ? names : std::vector<std::string>()) {
    PastLaunch launch = history.launch(name);
    if (std::ranges::find(launches, launch.id, &PastLaunch::id) == launches.end()) {
      launches.push_back(std::move(launch));
    }
  }
  if (launches.size() > most) {
    throw Error::usage("remote report", fmt::format("more than {} launches are named", most), "name fewer");
  }
  // Two may start in the same second.
  std::ranges::sort(launches, {},
                    [](const PastLaunch& one) { return std::tuple(one.began_at, one.first_key); });
  return launches;
}

int tell_file(Context& context, const fs::path& file, const nlohmann::ordered_json& data) {
  if (context.options.json) {
    context.print(data);
  } else {
    context.terminal.out(file.string() + "\n");
  }
  return 0;
}

int compare(Context& context, const ReportArguments& arguments, const std::vector<PastLaunch>& launches) {
  Project& project = context.project();
  const std::vector<Job> stored = project.jobs({.ask = false});
  std::vector<Report> reports;
  for (const PastLaunch& launch : launches) {
    ReportRequest request;
    request.fetch = !arguments.offline;
    context.when_interrupted = "interrupted: no page was written; nothing changes on the servers";
    std::ranges::copy_if(stored, std::back_inserter(request.jobs),
                         [&](const Job& job) { return job.launch == launch.id; });
    reports.push_back(request.jobs.empty() ? Report() : project.report(request));
    context.show(reports.back().errors);
  }
  // Uses the records as completed by the reports.
  std::vector<PastLaunch> now;
  const History history = arguments.offline ? History(project.folder()) : asked_history(context);
  std::ranges::transform(launches, std::back_inserter(now),
                         [&](const PastLaunch& one) { return history.launch(one.id.text()); });
  const auto data = comparison_json(now, reports, project.name());
  fs::path file = absolute_path(expand_home(arguments.out));
  if (arguments.out.empty()) {
    std::vector<std::string> keys;
    std::ranges::transform(now, std::back_inserter(keys),
                           [](const PastLaunch& one) { return std::to_string(one.first_key); });
    file = reports_folder(project) / fmt::format("launches-{}.html", join(keys, "-"));
  }
  write_file_atomic(file, report_page(data, Report()), 0600);
  return tell_file(context, file, data);
}

int run_report(Context& context, const ReportArguments& arguments) {
  if (const auto launches = several_launches(context, arguments.jobs); launches.size() > 1) {
    if (arguments.watch) {
      throw Error::usage("remote report --watch", "several launches are named", "watch one: --launch KEY");
    }
    return compare(context, arguments, launches);
  }
  ReportRequest request;
  request.jobs = choose_launch(context.project(), arguments.jobs);
  request.fetch = !arguments.offline;
  if (arguments.watch) {
    if (context.options.json && !context.stream) {
      throw Error::usage("report --watch --json", "a page that is written repeatedly is not a JSON value",
                         "leave one of the two out");
    }
    request.sample = true;
    return watch(context, arguments, request);
  }
  const Report report = context.project().report(request);
  context.show(report.errors);
  const auto data = report_json(report, context.project().name(), false);
  const fs::path file = write_page(context, arguments, data, report);
  return tell_file(context, file, data);
}

}  // namespace

void add_report(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_report);
  arguments.jobs.add(command, context);
  arguments.jobs.add_words(command, context);
  command.add_option("--out", arguments.out, "File to write (default: .remote/reports/launch-KEY.html)")
      ->type_name("FILE");
  command.add_flag("--offline", arguments.offline, "Do not ask the servers");
  command.add_flag("--watch", arguments.watch,
                   "Write the page every 3 s until the launch ends; it reloads itself");
}

}  // namespace remote::cli
