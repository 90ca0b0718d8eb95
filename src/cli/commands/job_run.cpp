// `remote job-run --cmd C --server S`: runs C as a job that outlives the connection.

#include <algorithm>
#include <iterator>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/commands/launch_options.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/output.hpp"
#include "cli/show/prepare.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {
namespace {

// Parses "0-9", "1,4,7", "0-20:5"; a "%4" at the end means at most four at a time.
void read_array(const std::string& text, JobRequest& request) {
  constexpr int highest = 100000;
  const auto wrong = [&] {
    return Error::usage(fmt::format("wrong --array '{}'", visible_line(text, 60)),
                        "it must be numbers from 0 to 100000 or ranges of them, at most 1000",
                        "such as 0-9, 1,4,7, 0-20:5, or 0-99%4 for four at a time");
  };
  const auto number = [&](std::string_view word) {
    const auto value = parse_number<int>(word);
    if (!value || *value < 0 || *value > highest) {
      throw wrong();
    }
    return *value;
  };
  const std::size_t percent = text.find('%');
  if (percent != std::string::npos) {
    request.array_limit = std::max(1, number(std::string_view(text).substr(percent + 1)));
  }
  for (const std::string& part : split(text.substr(0, percent), ',')) {
    const std::string_view word = part;
    const std::size_t colon = word.find(':');
    const auto numbers = numbers_of(word.substr(0, colon), highest);
    const int step = colon == std::string_view::npos ? 1 : number(word.substr(colon + 1));
    if (!numbers || step < 1) {
      throw wrong();
    }
    for (std::size_t i = 0; i < numbers->size() && request.array.size() <= 1000;
         i += static_cast<std::size_t>(step)) {
      request.array.push_back((*numbers)[i]);
    }
  }
  std::ranges::sort(request.array);
  if (request.array.size() > 1000 || std::ranges::adjacent_find(request.array) != request.array.end()) {
    throw wrong();
  }
}

struct JobArguments {
  JobRequest request;
  std::string array;
  std::string id;
  SlurmOptions slurm;
  LeaseOptions lease;
  CommandOption command;
  EnvOptions env;
  WorkdirOption workdir;
  bool pdb_on_error = false;
  bool follow = false;
  bool rsync = false;
};

// The server for the job: the only one or, if there are several, the user's answer on the terminal.
std::string ask_server(Context& context) {
  const std::vector<std::string> names = context.project().server_names();
  if (names.size() == 1) {
    return names.front();
  }
  const std::string all = join(names, ", ");
  if (!context.terminal.stdin_is_terminal()) {
    throw Error::usage("remote job-run: --server is required", "there are " + all,
                       "a job runs on one of them");
  }
  const auto answer = context.terminal.ask(fmt::format("On which server ({})? ", all), context.cancel);
  if (!answer || trim(*answer).empty()) {
    throw Error("nothing was started", "no server was named", "name one with --server");
  }
  return std::string(trim(*answer));
}

JobRequest request_of(Context& context, const JobArguments& arguments) {
  JobRequest request = arguments.request;
  request.command =
      arguments.command.required(context, "job-run", "such as: remote job-run -- python train.py");
  request.env = arguments.env.collect(context);
  arguments.workdir.choose(context, request.env);
  if (arguments.pdb_on_error) {
    request.env.emplace_back(pdb_on_error_variable, "1");
    request.enable_stacks = true;
  }
  request.env.insert(request.env.end(), arguments.slurm.env().begin(), arguments.slurm.env().end());
  request.lease = arguments.lease.choose({});
  request.requeue = arguments.slurm.requeue();
  request.after = arguments.slurm.jobs_before(context);
  if (!arguments.id.empty()) {
    request.id = JobId::parse(arguments.id);
    if (!request.id) {
      throw Error::usage(fmt::format("wrong --id '{}'", visible_line(arguments.id, 60)),
                         "it must be 32 hexadecimal digits in lower case");
    }
  }
  if (!arguments.array.empty()) {
    read_array(arguments.array, request);
  }
  if (request.server.empty()) {
    request.server = ask_server(context);
  }
  return request;
}

void show_started(Context& context, const StartResult& started, const std::vector<Job>& all, bool follow) {
  const Job& job = started.job;
  if (context.options.json) {
    context.print(all.size() == 1 ? jobs::record_json(job) : jobs_json(all));
  } else if (!started.error && all.size() > 1) {
    std::vector<int> keys;
    std::ranges::transform(all, std::back_inserter(keys), &Job::key);
    context.terminal.out(fmt::format("jobs {} {} on {}\n", ranges(keys), queued_words(job), job.server));
  } else if (!started.error) {
    context.terminal.out(job.state == JobState::queued
                             ? fmt::format("job {} {} on {}\n", job.key, queued_words(job), job.server)
                             : fmt::format("job {} started on {}\n", job.key, job.server));
    if (!follow) {
      context.terminal.notice(fmt::format("follow it with: remote job-tail --job {}", job.key));
    }
  }
}

int run_job(Context& context, const JobArguments& arguments) {
  if (arguments.follow) {
    refuse_output_as_json(context, "job-run --follow --json");
  }
  const JobRequest request = request_of(context, arguments);
  if (arguments.rsync) {
    send_project(context, {request.server});
  }
  bool unsaved = false;
  context.on_event = [&](const Event& event) {
    unsaved = unsaved || std::holds_alternative<StoreProblem>(event);
    context.show(event);
  };
  const StartResult started = context.project().start(request);
  std::vector<Job> all{started.job};
  all.insert(all.end(), started.more.begin(), started.more.end());
  show_started(context, started, all, arguments.follow);
  if (started.error) {
    context.show(*started.error);
    context.cancel.check();
    return 1;
  }
  if (unsaved) {
    context.terminal.notice(started_unsaved(all));
  }
  context.on_event = [&](const Event& event) { context.show(event); };
  return arguments.follow ? follow_on_screen(context, all, {}) : 0;
}

}  // namespace

void add_job_run(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_job);
  arguments.command.add(command, context);
  CLI::Option* server =
      command.add_option("--server", arguments.request.server, "Server to run on (default: the only one)");
  server->type_name("S");
  context.completers[server] = NameKind::servers;
  arguments.env.add(command);
  arguments.workdir.add(command);
  add_image_option(command, arguments.request.image);
  add_new_tag_option(command, arguments.request.tags, "Tag of the job; repeatable");
  arguments.lease.add(command);
  arguments.slurm.add(command, context);
  command.add_option("--array", arguments.array, "Slurm: one job for each number (SLURM_ARRAY_TASK_ID)")
      ->type_name("0-9");
  // For programs that need the id before the job starts (labml_remote's API); not documented in the help.
  command.add_option("--id", arguments.id)->group("");
  command.add_flag("--enable-stacks", arguments.request.enable_stacks,
                   "Let job-stacks read Python stacks without py-spy (signal 50)");
  command.add_flag("--pdb-on-error", arguments.pdb_on_error,
                   "Keep it after an uncaught Python exception for `remote attach`");
  command.add_flag("-f,--follow", arguments.follow,
                   "Show its output until it ends; Ctrl-C leaves the job running");
  command.add_flag("--rsync", arguments.rsync, "Copy the project to the server first");
  command.add_flag("--check,!--no-check", arguments.request.check,
                   "Check the servers before starting (the default)");
}

}  // namespace remote::cli
