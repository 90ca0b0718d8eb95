#include "jobs/protocol.hpp"

#include <cctype>
#include <iterator>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/hashing.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "jobs/sample.hpp"
#include "server/scripts.hpp"

// Composing: assignments, then src/server/lib.sh, then the action's functions, then their calls. Reading the
// answers is in protocol_parse.cpp.

namespace remote::jobs {
namespace {

// Their names, for state_of of lib.sh, and their functions.
std::string backends_text(const std::vector<Backend>& known, std::initializer_list<std::string_view> parts) {
  std::string names;
  std::string functions;
  for (const Backend& backend : known) {
    names += fmt::format(" {}", backend.name);
    functions += servers::lean_script(backend.script, parts);
  }
  return fmt::format("backends='{} '\n{}", names, functions);
}

// A script that runs on its own: what it shares with others stands in the place of its "#include" lines. Its
// own comments stay, for the person who reads it on a server.
std::string program_text(std::string_view file, const std::vector<Backend>& known) {
  constexpr std::string_view mark = "#include ";
  std::string text(scripts::text(file));
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    const std::size_t end = text.find('\n', at);
    const std::string name = text.substr(at + mark.size(), end - at - mark.size());
    text.replace(at, end + 1 - at,
                 name == "backends" ? backends_text(known, {"state", "end"})
                                    : servers::lean_script(scripts::text(name), {"state", "end"}));
  }
  return text;
}

// Sets NAME_text to a program's text and NAME_name to that of its file, which holds a digest of the text.
void set_program(servers::Script& script, const std::string& name, std::string_view extension,
                 const std::string& text) {
  script.set(name + "_name", fmt::format("{}-{:.16}.{}", name, sha256_hex(text), extension));
  script.set(name + "_text", text);
}

// What job.sh does on the server, for a job in a container: the same file then runs inside. Values stand in
// the file alone, so neither the engine nor its command line has the job's variables.
void enter_container(servers::Script& script, const std::string& project, const servers::ContainerRun& run) {
  const Container& container = run.container;
  std::vector<std::string> words{container.engine, container.image, run.rootless ? "1" : ""};
  words.insert(words.end(), container.args.begin(), container.args.end());
  script.add("container_job.sh")
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

// The text of a job's job.sh.
std::string job_text(const std::string& project, const StartRequest& request) {
  servers::Script script;
  const auto& container = request.process.container;
  script.append(fmt::format(
      "#!/bin/sh\n# Job {}: its environment, which may hold secrets, and its command.\n", request.id.text()));
  // The folder comes first: a variable of the user's may be HOME.
  script.add("job.sh");
  if (container) {
    enter_container(script, project, *container);
  } else {
    script.append("job_folder " + remote_path_word(project) + "\n");
  }
  for (const auto& [name, value] : request.process.env) {
    check_variable(name);
    if (name == cookie_name) {
      throw Error::usage(fmt::format("cannot set the variable '{}'", name),
                         "a job's processes are known by it", "leave it out: every job gets its own");
    }
    script.append("export ").set(name, value);
  }
  if (!trim(request.process.activate).empty()) {
    script.call(container ? "box_activate" : "job_activate", {request.process.activate});
  }
  if (container && !container->container.workdir.empty()) {
    script.call("box_workdir", {container->container.workdir});
  }
  // Longer commands do not fit into one argument of exec(2) (Linux: 128 KiB).
  constexpr std::size_t max_argument = 120'000;
  const std::string& command = request.process.command;
  script.call(command.size() > max_argument ? "eval" : "job_command", {command});
  if (container) {
    leave_container(script);
  }
  return script.text();
}

}  // namespace

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

servers::Script job_script(const RemoteFolder& folder, std::string_view file,
                           const std::vector<Backend>& known, std::initializer_list<std::string_view> parts) {
  servers::Script script;
  script.set_path("project", folder.project).set_path("jobs", folder.project + "/" + folder.jobs_folder);
  return script.add("lib.sh")
      .add("room.sh")
      .add("processes.sh")
      .add("second.sh")
      .add("init_file.sh")
      .add("container.sh", parts)
      .append(backends_text(known, parts))
      .add(file);
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

const std::vector<Backend>& backends() {
  static const std::vector<Backend> table{{"local", scripts::text("backend_local.sh")},
                                          {"labml", scripts::text("backend_labml.sh")}};
  return table;
}

const std::vector<Backend>& slurm_backends() {
  static const std::string text =
      std::string(scripts::text("backend_slurm.sh")) + std::string(scripts::text("backend_slurm_state.sh"));
  static const std::vector<Backend> table = [] {
    std::vector<Backend> all = backends();
    all.push_back({"slurm", text});
    return all;
  }();
  return table;
}

std::string slurm_job_program() {
  return program_text("slurm_job.sh", {});
}

servers::Action<StartAnswer> start_action(const RemoteFolder& folder,
                                          const std::vector<StartRequest>& requests,
                                          const std::string& lifeline, const std::string& lifeline_activate,
                                          const std::vector<Backend>& known) {
  servers::Action<StartAnswer> action;
  action.what = "start of " + counted(requests.size(), "job");
  servers::Script& script = action.script;
  set_program(script, "supervisor", "sh", program_text("supervisor.sh", known));
  if (!lifeline.empty()) {
    script.set("lifeline_activate", lifeline_activate).set("lifeline", lifeline);
    set_program(script, "lifeline", "py", program_text("lifeline.py", known));
    set_program(script, "ender", "sh", program_text("ender.sh", known));
  }
  script.add("python.sh")
      .append(job_script(folder, "start.sh", known, {"start"}).text())
      .add("oom.sh")
      .add("lifeline_run.sh")
      .call("start_begin");
  for (const StartRequest& request : requests) {
    std::vector<std::string> words{request.id.text(), job_text(folder.project, request), request.backend};
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
                                            const std::vector<JobId>& claim, bool await_lifeline,
                                            const std::vector<Backend>& known) {
  servers::Action<StatusAnswer> action;
  action.what = "state of " + counted(ids.size(), "job");
  servers::Script& script = action.script =
      job_script(folder, "status.sh", known, {"state"}).add("lifeline_run.sh").add("peer_words.sh");
  if (await_lifeline && !ids.empty()) {
    script.call("await_lifeline", {ids.front().text()});
  }
  std::vector<std::string> texts;
  std::ranges::transform(ids, std::back_inserter(texts), &JobId::text);
  script.call("status_begin").call("status_sizes", texts);
  call_each(script, "status_one", ids, claim);
  script.call("status_end");
  action.timeout = std::chrono::seconds(10);
  return action;
}

servers::Action<SampleAnswer> sample_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                            const std::vector<Backend>& known) {
  servers::Action<SampleAnswer> action;
  action.what = "sample with " + counted(ids.size(), "job");
  if (ids.empty()) {
    action.script.set_path("project", folder.project);
    servers::add_load(action.script);
    action.script.call("top_end");
    return action;
  }
  servers::Script& script = action.script =
      job_script(folder, "status.sh", known, {"state"}).add("lifeline_run.sh").add("peer_words.sh");
  servers::add_load(script);
  std::vector<std::string> texts;
  std::ranges::transform(ids, std::back_inserter(texts), &JobId::text);
  script.call("status_begin").call("status_sizes", texts);
  call_each(script, "status_one", ids, {});
  script.call("top_lines", texts).call("status_end");
  return action;
}

servers::Action<WorkersAnswer> workers_action(const RemoteFolder& folder, const JobId& id, int lines) {
  servers::Action<WorkersAnswer> action;
  action.what = "failed workers of a job";
  action.script = job_script(folder, "status.sh");
  action.script.add("peer_words.sh").add("workers.sh").call("status_begin");
  action.script.call("workers", {id.text(), std::to_string(lines)}).call("status_end");
  action.timeout = std::chrono::seconds(5);
  return action;
}

servers::Action<KillAnswer> kill_action(const RemoteFolder& folder, const std::vector<JobId>& ids, int signal,
                                        int grace_s, const std::string& by, const std::vector<Backend>& known,
                                        const std::vector<JobId>& claim) {
  if (signal < 1 || signal > 64) {
    throw Error::usage("cannot end jobs", fmt::format("there is no signal {}", signal),
                       "give a name such as INT, TERM or KILL, or a number");
  }
  grace_s = std::clamp(grace_s, 0, 1'000'000);
  servers::Action<KillAnswer> action;
  action.what = "end of " + counted(ids.size(), "job");
  action.script = job_script(folder, "kill.sh", known, {"state", "end"});
  action.script.call("kill_begin", {std::to_string(signal), std::to_string(grace_s), percent_encode(by)});
  call_each(action.script, "kill_one", ids, claim);
  action.script.call("kill_finish");
  action.timeout = std::chrono::seconds(grace_s + 30);
  return action;
}

std::string follow_script(const RemoteFolder& folder, const FollowRequest& request,
                          const std::vector<Backend>& known) {
  servers::Script script = job_script(folder, "follow.sh", known, {"state"});
  script.call("follow_job",
              {request.id.text(), std::to_string(request.out_offset), std::to_string(request.err_offset),
               request.lines ? std::to_string(std::max(0, *request.lines)) : "",
               request.wait_only ? "wait"
               : request.follow  ? "1"
                                 : "0",
               request.rank ? std::to_string(*request.rank) : ""});
  return script.open_input();
}

servers::Action<CleanAnswer> clean_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                          const std::vector<Backend>& known) {
  servers::Action<CleanAnswer> action;
  action.what = "removal of " + counted(ids.size(), "job");
  action.script = job_script(folder, "clean.sh", known, {"state"});
  call_each(action.script, "clean_one", ids);
  action.script.call("clean_finish");
  action.timeout = std::chrono::minutes(10);  // output of terabytes takes a disk its time
  return action;
}

}  // namespace remote::jobs
