// `remote sweep`: runs one command for many parameter values, shows the results, and continues a sweep.

#include <algorithm>
#include <iterator>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <remote/sweep.hpp>

#include "base/command.hpp"
#include "base/files.hpp"
#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/commands/launch_options.hpp"
#include "cli/given_file.hpp"
#include "cli/options.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/prepare.hpp"
#include "cli/show/sweeps.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {
namespace {

struct SweepArguments {
  SweepRequest request;
  std::vector<std::string> params;
  std::string file;
  CommandOption command;
  LeaseOptions lease;
  EnvOptions env;
  WorkdirOption workdir;
  std::optional<bool> rsync;
  bool dry_run = false;
  std::string resume;
  std::vector<std::string> again;
  std::string results;
  std::string csv;
  std::string best;
};

SweepRequest request_of(Context& context, const SweepArguments& arguments) {
  SweepRequest request = arguments.request;
  const std::string line = arguments.command.required(
      context, "sweep", "such as: remote sweep --param lr=1e-3,1e-4 -- python train.py --lr {lr}");
  const auto& words = context.command_words;
  const bool script = script_alone(line);
  if (words && (words->marked || words->words.size() > 1)) {
    request.words = words->words;
    if (script) {
      request.words.insert(request.words.begin(), "python");
    }
  } else {
    request.line = script ? with_python(line) : line;
  }
  std::ranges::transform(arguments.params, std::back_inserter(request.parameters), parse_sweep_parameter);
  if (!arguments.file.empty()) {
    request.rows = parse_sweep_rows(read_given_file("--file", expand_home(arguments.file)));
  }
  request.lease = arguments.lease.choose({});
  request.env = arguments.env.collect(context);
  arguments.workdir.choose(context, request.env);
  return request;
}

int show_started(Context& context, const SweepStarted& started, bool resumed) {
  std::vector<int> keys;
  std::ranges::transform(started.jobs, std::back_inserter(keys), &Job::key);
  if (context.options.json) {
    nlohmann::ordered_json points = nlohmann::ordered_json::array();
    for (const Job& job : started.jobs) {
      points.push_back(jobs::to_json(job));
    }
    context.print(
        {{"launch", started.launch.text()}, {"servers", started.servers}, {"points", std::move(points)}});
  } else {
    context.terminal.out(fmt::format("sweep {} {}: {} on {}\n", ranges(keys),
                                     resumed ? "continues" : "started", counted(started.jobs.size(), "point"),
                                     server_names(started.servers)));
    context.terminal.notice(
        fmt::format("watch it with: remote job-list --watch; its results: remote sweep --results {}",
                    started.jobs.front().key));
  }
  return 0;
}

int show_results(Context& context, const SweepArguments& arguments) {
  const SweepBest by = arguments.best.empty() ? SweepBest() : parse_sweep_best(arguments.best);
  const SweepResults results = context.project().sweep_results(arguments.results, by);
  if (!arguments.best.empty() && !results.best_by) {
    throw Error::usage(fmt::format("no point has printed a number '{}'", visible_line(by.name, 60)),
                       results.numbers.empty() ? "no point has printed any number" : "",
                       results.numbers.empty() ? "print one, such as loss 0.25"
                                               : "there are " + visible_line(join(results.numbers, ", ")));
  }
  if (!arguments.csv.empty() && arguments.csv != "-") {
    write_file_atomic(absolute_path(expand_home(arguments.csv)), results_csv(results));
  }
  if (context.options.json) {
    context.print(results_json(results));
  } else if (arguments.csv == "-") {
    context.terminal.out(results_csv(results));
  } else {
    context.terminal.out(results_table(context, results));
    context.terminal.notice(sweep_text(results));
  }
  return 0;
}

int sweep(Context& context, const SweepArguments& arguments) {
  const int modes = (arguments.resume.empty() ? 0 : 1) + (arguments.results.empty() ? 0 : 1);
  const bool begins =
      context.command_words || arguments.command.line || !arguments.params.empty() || !arguments.file.empty();
  if (modes > 1 || (modes == 1 && begins)) {
    throw Error::usage("remote sweep", "a new sweep, --resume and --results exclude each other",
                       "give one of them at a time");
  }
  if (arguments.results.empty() && !(arguments.csv.empty() && arguments.best.empty())) {
    throw Error::usage("remote sweep", "--csv and --best need --results", "add --results KEY");
  }
  if (arguments.resume.empty() && !arguments.again.empty()) {
    throw Error::usage("remote sweep", "--again is for --resume", "add --resume KEY");
  }
  if (!arguments.results.empty()) {
    return show_results(context, arguments);
  }
  if (!arguments.resume.empty()) {
    const auto again = [&](const char* word) {
      return std::ranges::find(arguments.again, word) != arguments.again.end();
    };
    return show_started(
        context,
        context.project().resume_sweep(
            {.launch = arguments.resume, .failed = again("failed"), .unknown = again("unknown")}),
        true);
  }
  const SweepRequest request = request_of(context, arguments);
  if (arguments.dry_run) {
    const SweepPlan plan = context.project().plan(request);
    context.options.json ? context.print(plan_json(plan)) : context.terminal.out(plan_text(context, plan));
    return 0;
  }
  if (arguments.rsync.value_or(context.project().launch_defaults().rsync.value_or(false))) {
    send_project(context, request.servers);
  }
  return show_started(context, context.project().sweep(request), false);
}

}  // namespace

void add_sweep(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, sweep);
  SweepRequest& request = arguments.request;
  command
      .add_option("--param", arguments.params,
                  "Values of a parameter: lr=1e-3,1e-4 or seed=0..4; repeatable, all combinations are run")
      ->type_name("NAME=…")
      ->allow_extra_args(false);
  command.add_option("--file", arguments.file, "CSV file with a heading: one point a row")->type_name("CSV");
  arguments.command.add(command, context, "Command, a line for the server's shell, with {NAME} for a value");
  add_server_option(command, context, request.servers);
  arguments.env.add(command);
  arguments.workdir.add(command);
  add_image_option(command, request.image);
  add_new_tag_option(command, request.tags, "Tag of all points; repeatable");
  arguments.lease.add(command);
  command
      .add_option("--slots", request.slots,
                  "Points to run on a server at the same time (default: 1; with a lease, as many as fit)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  add_number_option(command, "--retry", request.retry, "Times to run a point again that failed (default: 0)",
                    "N", 0, 1000);
  command.add_option("--name", request.name, "Name of the sweep on record")->type_name("NAME");
  command.add_option("--note", request.note, "Note in its record")->type_name("TEXT");
  command.add_flag("--enable-stacks", request.enable_stacks,
                   "Let job-stacks read Python stacks without py-spy (signal 50)");
  add_switch(command, "--rsync,!--no-rsync", arguments.rsync, "Copy the project to the servers first");
  command.add_flag("--check,!--no-check", request.check, "Check the servers before starting (the default)");
  CLI::Option* dry_run =
      command.add_flag("--dry-run", arguments.dry_run, "Show what would start, and start nothing");
  CLI::Option* resume =
      command.add_option("--resume", arguments.resume, "Run the missing points of this sweep");
  resume->type_name("KEY");
  command
      .add_option("--again", arguments.again,
                  "With --resume, also the points that failed, or whose server is unreachable (unknown)")
      ->type_name("STATE")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"failed", "unknown"}));
  CLI::Option* results = command.add_option("--results", arguments.results, "Show the points of this sweep");
  results->type_name("KEY");
  dry_run->excludes(resume)->excludes(results);
  context.completers[resume] = NameKind::launches;
  context.completers[results] = NameKind::launches;
  command.add_option("--csv", arguments.csv, "With --results, write them to this file (-: stdout)")
      ->type_name("FILE");
  command
      .add_option("--best", arguments.best,
                  "With --results, the number to compare by: min:loss, max:acc (default: min of the loss)")
      ->type_name("RULE");
}

}  // namespace remote::cli
