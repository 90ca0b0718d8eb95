#include "jobs/protocol.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "jobs/protocol_parts.hpp"
#include "scripts/scripts.hpp"
#include "ssh/connection.hpp"

// Composing: assignments, then src/scripts/lib.sh, then the action's functions, then their calls with quoted
// values. Parsing is in protocol_parse.cpp.

namespace remote::jobs {
namespace {

// Longer commands and values do not fit into one argument of exec(2) (Linux: 128 KiB).
constexpr std::size_t max_argument = 120'000;

// A script without the comments and blank lines that are for us only, and of its parts only these.
std::string lean_text(std::string_view script, std::initializer_list<std::string_view> parts = {}) {
  constexpr std::string_view mark = "#part ";
  std::string text;
  bool wanted = true;
  for (const std::string& line : split(script, '\n')) {
    const std::string_view bare = trim(line);
    if (bare.starts_with(mark)) {
      wanted = std::find(parts.begin(), parts.end(), bare.substr(mark.size())) != parts.end();
    } else if (wanted && !bare.empty() && bare.front() != '#') {
      text += line;
      text += '\n';
    }
  }
  return text;
}

std::string lean(std::string_view name) {
  return lean_text(scripts::text(name));
}

// Their names, for state_of of lib.sh, and their functions.
std::string backends_text(const std::vector<Backend>& known, std::initializer_list<std::string_view> parts) {
  std::string names;
  std::string functions;
  for (const Backend& backend : known) {
    names += fmt::format(" {}", backend.name);
    functions += lean_text(backend.script, parts);
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

std::string prelude(const RemoteFolder& folder, std::string_view action, const std::vector<Backend>& known,
                    std::initializer_list<std::string_view> parts) {
  return fmt::format("project={}\njobs=$project/{}\n{}{}{}", remote_path_word(folder.project),
                     shell_quote(folder.jobs_folder), lean("lib.sh"), backends_text(known, parts),
                     lean(action));
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
  for (const auto& [name, value] : request.env) {
    check_variable(name);
    if (name == cookie_name) {
      throw Error::usage(fmt::format("cannot set the variable '{}'", name),
                         "a job's processes are known by it");
    }
    text += fmt::format("export {}={}\n", name, shell_quote(value));
  }
  if (!trim(request.activate).empty()) {
    text += fmt::format(
        "eval {} || {{\n  echo 'remote: cannot enter the Python environment' >&2\n  exit 127\n}}\n",
        shell_quote(request.activate));
  }
  if (request.command.size() > max_argument) {
    text += fmt::format("eval {}\n", shell_quote(request.command));
  } else {
    // A shell that is given one simple command becomes it: the job's pid is then the command's own.
    // --norc: within a session of sshd, bash -c reads .bashrc, which may print, and undo the activation.
    text += fmt::format(
        "set -- {}\nif command -v bash >/dev/null 2>&1; then\n  exec bash --norc -c -- \"$1\"\nfi\n"
        "exec sh -c -- \"$1\"\n",
        shell_quote(request.command));
  }
  return text;
}

std::string start_script(const RemoteFolder& folder, const std::vector<StartRequest>& requests,
                         const std::string& lifeline, const std::string& lifeline_activate,
                         const std::vector<Backend>& known) {
  std::string script = fmt::format("supervisor_name={}\nsupervisor_text={}\n", supervisor_name(),
                                   shell_quote(supervisor_text()));
  if (!lifeline.empty()) {
    const std::string program(scripts::text("lifeline.py"));
    const std::string ender = ender_text(known);
    script += fmt::format("lifeline_activate={}\n", shell_quote(lifeline_activate));
    script += fmt::format("lifeline={}\nlifeline_name={}\nlifeline_text={}\nender_name={}\nender_text={}\n",
                          shell_quote(lifeline), name_with_digest("lifeline", program, "py"),
                          shell_quote(program), name_with_digest("ender", ender, "sh"), shell_quote(ender));
  }
  script += prelude(folder, "start.sh", known, {"start"}) + lean("oom.sh");
  script += "start_begin\n";
  for (const StartRequest& request : requests) {
    script += fmt::format("start_one {} {} {}\n", request.id.text(),
                          shell_quote(job_text(folder.project, request)), shell_quote(request.backend));
  }
  script += "start_finish\n";
  return ssh::wrap_script(script);
}

std::string status_script(const RemoteFolder& folder, const std::vector<JobId>& ids,
                          const std::vector<JobId>& claim, bool await_lifeline,
                          const std::vector<Backend>& known) {
  std::string script = prelude(folder, "status.sh", known, {"state"});
  if (await_lifeline && !ids.empty()) {
    script += fmt::format("await_lifeline {}\n", ids.front().text());
  }
  script += "status_begin\nstatus_sizes";
  for (const JobId& id : ids) {
    script += fmt::format(" {}", id.text());
  }
  script += '\n';
  for (const JobId& id : ids) {
    const bool claimed = std::find(claim.begin(), claim.end(), id) != claim.end();
    script += fmt::format("status_one {} {}\n", id.text(), claimed ? 1 : 0);
  }
  script += "status_finish\n";
  return ssh::wrap_script(script);
}

std::string kill_script(const RemoteFolder& folder, const std::vector<JobId>& ids, int signal, int grace_s,
                        const std::string& by, const std::vector<Backend>& known) {
  if (signal < 1 || signal > 64) {
    throw Error::usage("cannot end jobs", fmt::format("there is no signal {}", signal));
  }
  std::string script = prelude(folder, "kill.sh", known, {"state", "end"});
  script += fmt::format("kill_begin {} {} {}\n", signal, std::clamp(grace_s, 0, 1'000'000),
                        shell_quote(percent_encode(by)));
  for (const JobId& id : ids) {
    script += fmt::format("kill_one {}\n", id.text());
  }
  script += "kill_finish\n";
  return ssh::wrap_script(script);
}

std::string follow_script(const RemoteFolder& folder, const FollowRequest& request,
                          const std::vector<Backend>& known) {
  const std::string lines = request.lines ? std::to_string(std::max(0, *request.lines)) : "''";
  // Not ssh::wrap_script: the end of stdin is what tells the script that nobody follows any more, so it is
  // kept as fd 3. Else as there: one compound command.
  return fmt::format("{{\nexec 3<&0 </dev/null\n{}follow_job {} {} {} {} {}\nexit\n}}\n",
                     prelude(folder, "follow.sh", known, {"state"}), request.id.text(), request.out_offset,
                     request.err_offset, lines,
                     request.wait_only ? "wait"
                     : request.follow  ? "1"
                                       : "0");
}

}  // namespace remote::jobs
