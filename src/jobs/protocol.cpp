#include "jobs/protocol.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "jobs/sample.hpp"
#include "server/program.hpp"
#include "servers/shell_text.hpp"

// Composing the requests. Reading the answers is in protocol_parse.cpp.

namespace remote::jobs {
namespace {

// More bytes than an honest answer about `jobs` jobs and a talkative login shell need. A job takes many times
// the room of its line here, so what a server may send is bounded by what it was asked.
constexpr std::size_t most_answered(std::size_t jobs) {
  return (std::size_t{1} << 20U) + jobs * (std::size_t{8} << 10U);
}

// What job.sh does on the server, for a job in a container: the same file then runs inside. Values stand in
// the file alone, so neither the engine nor its command line has the job's variables.
void enter_container(servers::Script& script, const std::string& project, const servers::ContainerRun& run) {
  const Container& container = run.container;
  std::vector<std::string> words{servers::engine_word(container), container.image, run.rootless ? "1" : ""};
  words.insert(words.end(), container.args.begin(), container.args.end());
  script.add("lib/container_job.sh")
      .append(
          "if [ \"${1-}\" != inside ]; then\nbox_here=$(pwd -P)\n"
          "box_files=\"${1-job.out} ${2-job.err} ${3-.note} ${4--}\"\njob_folder " +
          remote_path_word(project) + "\n");
  if (!trim(run.prologue).empty()) {
    script.call("job_prologue", {run.prologue});
  }
  script.call("box_enter", words)
      .append("fi\nbox_inside \"$2\" \"$3\" \"$7\"\n(\nbox_outputs \"$4\" \"$5\" \"$6\" \"$7\" \"$8\"\n");
}

void leave_container(servers::Script& script) {
  script.append(")\nexit $?\n");
}

// $remote_program in the folder of a job: the copy of this version that start.sh makes (lib/keep.sh).
std::string kept_program(std::string_view from) {
  return fmt::format("remote_program=$(cd \"{}../.bin/{}\" && pwd -P)\n", from, server::program_digest());
}

// The text of a job's job.sh. The variables that all these jobs have come first: what is the same in several
// texts is sent once (Texts).
std::string job_text(const std::string& project, const StartRequest& request, const Env& common,
                     bool leased) {
  const std::string& tree = request.process.tree;
  servers::Script script;
  const auto& container = request.process.container;
  script.append("#!/bin/sh\n# A job: its environment, which may hold secrets, and its command.\n" +
                kept_program("${0%job.sh}"));
  // The folder comes first: a variable of the user's may be HOME.
  script.add("lib/job.sh");
  const bool again = std::ranges::count(request.files, again_file,
                                        [](const auto& file) { return std::string_view(file.first); }) > 0;
  script.append(leased ? "job_queue\njob_read_devices\n" : "").append(again ? "job_read_attempt\n" : "");
  if (container) {
    enter_container(script, project, *container);
  } else {
    script.append("job_folder " + remote_path_word(project) + "\n");
  }
  Env env = common;
  std::ranges::copy_if(request.process.env, std::back_inserter(env),
                       [&](const auto& one) { return std::ranges::find(common, one) == common.end(); });
  for (const auto& [name, value] : env) {
    check_variable(name);
    if (name == cookie_name) {
      throw Error::usage(fmt::format("cannot set the variable '{}'", name),
                         "a job's processes are known by it", "leave it out: every job gets its own");
    }
    script.call("export", {name + "=" + value});
  }
  script.append(leased ? "job_devices\n" : "").append(again ? "job_attempt\n" : "");
  if (!trim(request.process.activate).empty()) {
    script.call(container ? "box_activate" : "job_activate", {request.process.activate});
  }
  if (!tree.empty()) {
    script.call("job_tree", {tree});
  }
  if (container && !container->container.workdir.empty()) {
    script.call("box_workdir", {container->container.workdir});
  }
  script.append("job_workdir\n");
  // Longer commands do not fit into one argument of exec(2) (Linux: 128 KiB).
  constexpr std::size_t max_argument = 120'000;
  const std::string& command = request.process.command;
  script.call(command.size() > max_argument ? "eval" : "job_command", {command});
  if (container) {
    leave_container(script);
  }
  return servers::shell_text(script);
}

// The variables that all of these jobs are given once, with the same value.
Env common_variables(const std::vector<StartRequest>& requests) {
  Env common;
  for (const auto& one : requests.front().process.env) {
    const bool everywhere = std::ranges::all_of(requests, [&](const StartRequest& request) {
      return std::ranges::count(request.process.env, one.first, &Env::value_type::first) == 1 &&
             std::ranges::find(request.process.env, one) != request.process.env.end();
    });
    if (everywhere) {
      common.push_back(one);
    }
  }
  return common;
}

// How many bytes all of them begin with.
std::size_t common_start(const std::vector<std::string>& texts) {
  std::size_t size = texts.front().size();
  for (const std::string& text : texts) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(size, text.size()));
    size = static_cast<std::size_t>(std::mismatch(text.begin(), end, texts.front().begin()).first -
                                    text.begin());
  }
  return size;
}

// Texts without the lines that all of them begin and end with.
struct Texts {
  std::string head;
  std::vector<std::string> own;
  std::string tail;

  explicit Texts(std::vector<std::string> texts) : own(std::move(texts)) {
    head = take_start([this](std::size_t common) { return own.front().rfind('\n', common - 1) + 1; });
    std::ranges::for_each(own, [](std::string& text) { std::ranges::reverse(text); });
    tail = take_start([this](std::size_t common) { return own.front().rfind('\n', common - 1); });
    std::ranges::reverse(tail);
    std::ranges::for_each(own, [](std::string& text) { std::ranges::reverse(text); });
  }

 private:
  std::string take_start(const auto& whole_lines) {
    const std::size_t common = common_start(own);
    const std::size_t size = common == 0 ? 0 : whole_lines(common);
    std::string start = own.front().substr(0, size);
    std::ranges::for_each(own, [&](std::string& text) { text.erase(0, size); });
    return start;
  }
};

}  // namespace

std::vector<std::string> texts_of(const std::vector<JobId>& ids) {
  std::vector<std::string> texts;
  std::ranges::transform(ids, std::back_inserter(texts), &JobId::text);
  return texts;
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 &&
        (std::isalnum(byte) != 0 || std::string_view("._@-").find(c) != std::string_view::npos)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", byte);
    }
  }
  return encoded.empty() ? "-" : encoded;
}

std::string by_word(const JobReason& by) {
  switch (by.kind) {
    case JobReason::Kind::after_rank:
      return fmt::format("rank:{}", by.number);
    case JobReason::Kind::after_loss:
      return "lost:" + percent_encode(by.text);
    case JobReason::Kind::after_hang:
      return fmt::format("hang:{}", by.number);
    case JobReason::Kind::by_launch:
      return "launch";
    default:
      return "user:" + percent_encode(by.text);
  }
}

servers::Script job_script(const RemoteFolder& folder, std::string_view file) {
  servers::Script script;
  script.set_path("project", folder.project).set_path("jobs", folder.project + "/" + folder.jobs_folder);
  return script.add(file);
}

void call_each(servers::Script& script, std::string_view function, const std::vector<JobId>& ids) {
  for (const JobId& id : ids) {
    script.call(function, {id.text()});
  }
}

void call_each(servers::Script& script, std::string_view function, const std::vector<JobId>& ids,
               const std::vector<JobId>& claim) {
  for (const JobId& id : ids) {
    script.call(function, {id.text(), std::ranges::find(claim, id) != claim.end() ? "1" : "0"});
  }
}

std::string slurm_job_program() {
  return kept_program("") + servers::shell_text(servers::Script().add("lib/slurm_job.sh"));
}

JobTexts job_texts(const RemoteFolder& folder, const std::vector<StartRequest>& requests, bool leased) {
  std::vector<std::string> all;
  const Env common = common_variables(requests);
  std::ranges::transform(requests, std::back_inserter(all), [&](const StartRequest& request) {
    return job_text(folder.project, request, common, leased);
  });
  Texts texts(std::move(all));
  return {std::move(texts.head), std::move(texts.own), std::move(texts.tail)};
}

servers::Action<StartAnswer> start_action(const RemoteFolder& folder,
                                          const std::vector<StartRequest>& requests,
                                          const std::string& lifeline, const std::string& activate,
                                          const std::vector<std::string>& lease) {
  servers::Action<StartAnswer> action;
  action.what = "start of " + counted(requests.size(), "job");
  action.max_output = most_answered(requests.size());
  servers::Script& script = action.script = job_script(folder, "actions/start.sh");
  const JobTexts texts = job_texts(folder, requests, !lease.empty());
  script.set("job_head", texts.head).set("job_tail", texts.tail);
  if (!lifeline.empty() || !lease.empty()) {
    script.set("lifeline_activate", activate);
  }
  if (!lifeline.empty()) {
    script.set("lifeline", lifeline);
  }
  if (!lease.empty()) {
    script.set("lease", join(lease, " "));
  }
  script.call("start_begin");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const StartRequest& request = requests[i];
    std::vector<std::string> words{request.id.text(), texts.own[i], request.backend};
    for (const auto& [name, text] : request.files) {
      words.insert(words.end(), {name, text});
    }
    script.call("start_one", words);
  }
  script.call("start_finish");
  action.watchful = true;
  action.timeout = std::chrono::seconds(60);
  return action;
}

servers::Action<StatusAnswer> status_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                            const std::vector<JobId>& claim, StatusAfter after) {
  servers::Action<StatusAnswer> action;
  action.what = "state of " + counted(ids.size(), "job");
  action.max_output = most_answered(ids.size());
  servers::Script& script = action.script = job_script(folder, "actions/status.sh");
  if (after == StatusAfter::start && !ids.empty()) {
    script.call("await_lifeline", {ids.front().text()});
  }
  script.call("status_begin").call("status_sizes", texts_of(ids));
  call_each(script, "status_one", ids, claim);
  script.call("status_end");
  action.timeout = std::chrono::seconds(10);
  return action;
}

servers::Action<SampleAnswer> sample_action(const RemoteFolder& folder, const std::vector<JobId>& ids) {
  servers::Action<SampleAnswer> action;
  action.what = "sample with " + counted(ids.size(), "job");
  if (ids.empty()) {
    action.script = servers::facts_action(servers::load_request(folder.project)).script;
    return action;
  }
  servers::Script& script = action.script = job_script(folder, "actions/status.sh");
  script.call("status_begin").call("status_sizes", texts_of(ids));
  call_each(script, "status_one", ids, {});
  script.call("last_lines", texts_of(ids));
  servers::add_facts(script, servers::load_request(folder.project));
  script.call("status_end");
  return action;
}

std::string attach_script(const RemoteFolder& folder, const JobId& id, const std::string& wait,
                          const std::string& activate) {
  servers::Script script = job_script(folder, "actions/attach.sh");
  script.set("activate", activate).add("lib/tty.sh").call("attach_job", {id.text(), wait});
  return script.open_input();
}

servers::Action<WorkersAnswer> workers_action(const RemoteFolder& folder, const JobId& id, int lines) {
  servers::Action<WorkersAnswer> action;
  action.what = "failed workers of a job";
  action.script = job_script(folder, "actions/workers.sh");
  action.script.call("status_begin");
  action.script.call("workers", {id.text(), std::to_string(lines)}).call("status_end");
  action.timeout = std::chrono::seconds(5);
  return action;
}

servers::Action<KillAnswer> kill_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                        const KillOrder& order, const std::vector<JobId>& claim,
                                        const std::vector<JobId>& dead) {
  if (order.signal < 1 || order.signal > 64) {
    throw Error::usage("cannot end jobs", fmt::format("there is no signal {}", order.signal),
                       "give a name such as INT, TERM or KILL, or a number");
  }
  const int grace_s = std::clamp(order.grace_s, 0, 1'000'000);
  servers::Action<KillAnswer> action;
  action.what = "end of " + counted(ids.size(), "job");
  action.max_output = most_answered(ids.size());
  servers::Script& script = action.script = job_script(folder, "actions/kill.sh");
  script.add("actions/status.sh").set("status_too", "1").call("status_begin");
  script.call("kill_begin",
              {std::to_string(order.signal), std::to_string(grace_s), order.by.empty() ? "-" : order.by});
  call_each(script, "kill_one", ids, claim);
  script.call("kill_finish").call("status_sizes", texts_of(ids));
  call_each(script, "status_one", ids, dead);
  script.call("status_end");
  action.timeout = std::chrono::seconds(grace_s + 40);
  return action;
}

std::string follow_script(const RemoteFolder& folder, const FollowRequest& request) {
  servers::Script script = job_script(folder, "actions/follow.sh");
  script.call("follow_job",
              {request.id.text(), std::to_string(request.out_offset), std::to_string(request.err_offset),
               request.lines   ? std::to_string(std::max(0, *request.lines))
               : request.since ? fmt::format("@{}", std::max<std::int64_t>(0, request.since->count()))
                               : "",
               request.wait_only ? "wait"
               : request.follow  ? "1"
                                 : "0",
               request.rank ? std::to_string(*request.rank) : ""});
  return script.open_input();
}

servers::Action<CleanAnswer> clean_action(const RemoteFolder& folder, const std::vector<JobId>& ids) {
  servers::Action<CleanAnswer> action;
  action.what = "removal of " + counted(ids.size(), "job");
  action.max_output = most_answered(ids.size());
  action.script = job_script(folder, "actions/clean.sh");
  call_each(action.script, "clean_one", ids);
  action.script.call("clean_finish");
  action.timeout = std::chrono::minutes(10);  // output of terabytes takes a disk its time
  return action;
}

}  // namespace remote::jobs
