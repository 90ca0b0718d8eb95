// `remote report`: one HTML page about a launch, or about a job.

#include <filesystem>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/report/page.hpp"
#include "cli/report/page_server.hpp"
#include "cli/show/launches.hpp"

namespace remote::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  JobOptions jobs;
  std::string out;
  bool offline = false;
  bool watch = false;
};

// The launch that is named, or the newest; a job alone where it is named, or there is no launch.
std::vector<Job> choose(Project& project, const JobOptions& options) {
  const std::vector<Job> found = project.jobs({.selection = options.selection(), .some = true, .ask = false});
  const Job newest = options.named() ? found.front() : found.back();
  std::vector<Job> chosen = newest.launch ? project.with_launch({newest}) : std::vector<Job>{newest};
  for (const Job& job : found) {
    if (options.named() && job.id != newest.id && (!newest.launch || job.launch != newest.launch)) {
      throw Error::usage("remote report", "several launches or jobs are named",
                         "a report is about one: --launch KEY");
    }
  }
  return chosen;
}

// Where the page goes when nobody says so: beside the jobs' output, which no rsync sends.
fs::path usual_file(Project& project, const Job& first) {
  return project.folder() / ".remote" / "reports" /
         fmt::format("{}-{}.html", first.launch ? "launch" : "job", first.key);
}

int write_page(Context& context, const Arguments& arguments, const nlohmann::ordered_json& data,
               const Report& report) {
  const bool given = !arguments.out.empty();
  const fs::path file =
      given ? absolute_path(expand_home(arguments.out)) : usual_file(context.project(), report.jobs.front());
  if (!given) {
    context.project().require_trust();  // the folder may be a link that leads out of the project
    make_folders(file.parent_path(), 0700);
  }
  write_file_atomic(file, report_page(data, report), 0600);  // it has variables and output
  if (context.options.json) {
    context.print(data);
  } else {
    context.terminal.out(file.string() + "\n");
  }
  return 0;
}

// Serves the page and looks again and again, until Ctrl-C.
[[noreturn]] void watch(Context& context, ReportRequest request) {
  constexpr std::chrono::seconds every{3};
  Project& project = context.project();
  PageServer server;
  bool told = false;
  for (;;) {
    const Report report = project.report(request);
    const bool ended = std::ranges::all_of(report.jobs, [](const Job& job) { return is_final(job.state); });
    const auto data = report_json(report, project.name(), !ended);
    server.set(report_page(data, report), dump_json_line(data));
    if (!told) {
      if (context.stream) {
        context.print({{"address", server.address()}});
      } else {
        context.terminal.out(server.address() + "\n");
      }
      context.terminal.notice("open it in a browser; Ctrl-C ends the serving, and no job");
      told = true;
    }
    request.jobs = report.jobs;
    context.pause(every);
    if (ended) {  // nothing can change any more
      for (;;) {
        context.pause(every);
      }
    }
  }
}

int run(Context& context, const Arguments& arguments) {
  ReportRequest request;
  request.jobs = choose(context.project(), arguments.jobs);
  request.fetch = !arguments.offline;
  if (arguments.watch) {
    if (context.options.json && !context.stream) {
      throw Error::usage("report --watch --json", "a page that is served is no JSON value",
                         "leave one of the two out");
    }
    request.sample = true;
    watch(context, request);
  }
  const Report report = context.project().report(request);
  context.show(report.errors);
  const auto data = report_json(report, context.project().name(), false);
  return write_page(context, arguments, data, report);
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  const auto [command, arguments] =
      add_command(app, context, "report", "Make one HTML page about a launch: what happened, and why", run);
  arguments.jobs.add(command, context);
  arguments.jobs.add_words(command, context);
  command.add_option("--out", arguments.out, "The file (default: .remote/reports/launch-KEY.html)")
      ->type_name("FILE");
  command.add_flag("--offline", arguments.offline, "Do not ask the servers: what is known here");
  CLI::Option* out = command.get_option("--out");
  command
      .add_flag("--watch", arguments.watch, "Serve the page on 127.0.0.1 and follow the launch, until Ctrl-C")
      ->excludes(out);
}

}  // namespace remote::cli
