#include "jobs/protocol.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "jobs/protocol_parts.hpp"
#include "scripts/scripts.hpp"

// Composing: assignments, then src/scripts/lib.sh, then the action's functions, then their calls. Reading the
// answers is in protocol_parse.cpp.

namespace remote::jobs {
namespace {

// Longer commands and values do not fit into one argument of exec(2) (Linux: 128 KiB).
constexpr std::size_t max_argument = 120'000;

std::string lean(std::string_view file) {
  return servers::lean_script(scripts::text(file));
}

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

// The supervisor's file: it runs on its own, so what it shares with start.sh is put into it. Its comments
// stay, for the person who reads it on a server.
std::string supervisor_text() {
  std::string text(scripts::text("supervisor.sh"));
  constexpr std::string_view place = "#include oom.sh\n";
  text.replace(text.find(place), place.size(), lean("oom.sh"));
  return text;
}

// kill.sh as a program of its own, which the lifeline runs: SIGNAL GRACE_S BY ID…
std::string ender_text(const std::vector<Backend>& known) {
  return "# Ends jobs: SIGNAL GRACE_S BY ID...\njobs=${0%/.bin/*}\n" + lean("lib.sh") +
         backends_text(known, {"state", "end"}) + lean("kill.sh") +
         "kill_begin \"$1\" \"$2\" \"$3\"\nshift 3\nfor asked; do\n  kill_one "
         "\"$asked\"\ndone\nkill_finish\n";
}

std::string name_with_digest(std::string_view name, std::string_view text, std::string_view extension) {
  std::uint64_t digest = 14695981039346656037U;  // FNV-1a: tells texts apart, that is all
  for (const char c : text) {
    digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  return fmt::format("{}-{:016x}.{}", name, digest, extension);
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
  script.set_path("project", folder.project);
  script.append("jobs=$project/" + shell_quote(folder.jobs_folder) + "\n");
  return script.add("lib.sh").append(backends_text(known, parts)).add(file);
}

void call_each(servers::Script& script, std::string_view function, const std::vector<JobId>& ids) {
  for (const JobId& id : ids) {
    script.call(function, {id.text()});
  }
}

const std::vector<Backend>& backends() {
  static const std::vector<Backend> table{{"local", scripts::text("backend_local.sh")}};
  return table;
}

std::string supervisor_name() {
  return name_with_digest("supervisor", supervisor_text(), "sh");
}

std::string job_text(const std::string& project, const StartRequest& request) {
  // The folder comes first: a variable of the user's may be HOME.
  std::string text = fmt::format(
      "#!/bin/sh\n# Job {}: its environment, which may hold secrets, and its command.\n"
      "cd {} || {{\n  echo 'remote: cannot enter the project folder' >&2\n  exit 127\n}}\n",
      request.id.text(), remote_path_word(project));
  for (const auto& [name, value] : request.process.env) {
    check_variable(name);
    if (name == cookie_name) {
      throw Error::usage(fmt::format("cannot set the variable '{}'", name),
                         "a job's processes are known by it");
    }
    text += fmt::format("export {}={}\n", name, shell_quote(value));
  }
  if (!trim(request.process.activate).empty()) {
    text += fmt::format(
        "eval {} || {{\n  echo 'remote: cannot enter the Python environment' >&2\n  exit 127\n}}\n",
        shell_quote(request.process.activate));
  }
  if (request.process.command.size() > max_argument) {
    text += fmt::format("eval {}\n", shell_quote(request.process.command));
  } else {
    // A shell that is given one simple command becomes it: the job's pid is then the command's own.
    // --norc: within a session of sshd, bash -c reads .bashrc, which may print, and undo the activation.
    text += fmt::format(
        "set -- {}\nif command -v bash >/dev/null 2>&1; then\n  exec bash --norc -c -- \"$1\"\nfi\n"
        "exec sh -c -- \"$1\"\n",
        shell_quote(request.process.command));
  }
  return text;
}

servers::Action<StartAnswer> start_action(const RemoteFolder& folder,
                                          const std::vector<StartRequest>& requests,
                                          const std::string& lifeline, const std::string& lifeline_activate,
                                          const std::vector<Backend>& known) {
  servers::Action<StartAnswer> action;
  action.what = "start of " + counted(requests.size(), "job");
  servers::Script& script = action.script;
  script.set("supervisor_name", supervisor_name()).set("supervisor_text", supervisor_text());
  if (!lifeline.empty()) {
    const std::string program(scripts::text("lifeline.py"));
    const std::string ender = ender_text(known);
    script.set("lifeline_activate", lifeline_activate).set("lifeline", lifeline);
    script.set("lifeline_name", name_with_digest("lifeline", program, "py")).set("lifeline_text", program);
    script.set("ender_name", name_with_digest("ender", ender, "sh")).set("ender_text", ender);
  }
  script.append(job_script(folder, "start.sh", known, {"start"}).text()).add("oom.sh").call("start_begin");
  for (const StartRequest& request : requests) {
    script.call("start_one", {request.id.text(), job_text(folder.project, request), request.backend});
  }
  script.call("start_finish");
  action.timeout = std::chrono::seconds(60);
  return action;
}

servers::Action<StatusAnswer> status_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                            const std::vector<JobId>& claim, bool await_lifeline,
                                            const std::vector<Backend>& known) {
  servers::Action<StatusAnswer> action;
  action.what = "state of " + counted(ids.size(), "job");
  servers::Script& script = action.script = job_script(folder, "status.sh", known, {"state"});
  if (await_lifeline && !ids.empty()) {
    script.call("await_lifeline", {ids.front().text()});
  }
  std::vector<std::string> texts;
  for (const JobId& id : ids) {
    texts.push_back(id.text());
  }
  script.call("status_begin").call("status_sizes", texts);
  for (const JobId& id : ids) {
    const bool claimed = std::find(claim.begin(), claim.end(), id) != claim.end();
    script.call("status_one", {id.text(), claimed ? "1" : "0"});
  }
  script.call("status_finish");
  action.timeout = std::chrono::seconds(10);
  return action;
}

servers::Action<KillAnswer> kill_action(const RemoteFolder& folder, const std::vector<JobId>& ids, int signal,
                                        int grace_s, const std::string& by,
                                        const std::vector<Backend>& known) {
  if (signal < 1 || signal > 64) {
    throw Error::usage("cannot end jobs", fmt::format("there is no signal {}", signal));
  }
  grace_s = std::clamp(grace_s, 0, 1'000'000);
  servers::Action<KillAnswer> action;
  action.what = "end of " + counted(ids.size(), "job");
  action.script = job_script(folder, "kill.sh", known, {"state", "end"});
  action.script.call("kill_begin", {std::to_string(signal), std::to_string(grace_s), percent_encode(by)});
  call_each(action.script, "kill_one", ids);
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
                                 : "0"});
  // Not Script::input(): the end of stdin is what tells the script that nobody follows any more, so it is
  // kept as fd 3. Else as there: one compound command.
  return "{\nexec 3<&0 </dev/null\n" + script.text() + "exit\n}\n";
}

}  // namespace remote::jobs
