#include "server/agent_command.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/shell_quote.hpp"
#include "server/agent_text.hpp"
#include "server/unpack_agent.hpp"

namespace remote::server {

namespace {

// The line must have the same meaning in every login shell, whatever the account exports, including flags
// like errexit and nounset. A terminal changes bytes, so frames cannot pass through it. A startup file may
// have unset HOME.
// r_full: no process can be started, so the agent is executed without ls and without a trial run. The limit
// counts threads; only /proc/loadavg provides that number without starting a process. bash would wait 15
// seconds for a process, while dash and ash exit (EXIT).
// r_start FOLDER: executes the agent if the folder and its parent belong to this user, are closed to others
// and are not links, and if the agent works. A file that a crash of the server has emptied exits with 0, so a
// working agent exits with 42. xz --version fails with the xz of busybox, which lacks the filter for x86
// code.
// r_take: reads a line with a number, and that many bytes: the request for the agent, which is discarded,
// then the script.
constexpr std::string_view command_format =
    R"sh(unset -f command [ echo read; r_p= r_m= r_n=; r_no() {{ trap - EXIT; echo; echo "{3}$1"; exit 1; }}; )sh"
    R"sh([ -t 0 ] && r_no "{4}"; {5})sh"
    R"sh([ "$HOME" ] || r_no "HOME is not set"; )sh"
    R"sh(r_full() {{ while command read -r r_a r_b r_m r_c; do [ "$r_a$r_b" = Maxprocesses ] && break; done </proc/self/limits; )sh"
    R"sh(case $r_m in unlimited|"") return 1 ;; esac; command read -r r_a r_b r_c r_n r_c </proc/loadavg; )sh"
    R"sh([ "${{r_n#*/}}" -ge $((r_m-8)) ] || return; r_n=8; for r_a in /proc/[0-9]*; do [ -O "$r_a" ] && r_n=$((r_n+1)); done; )sh"
    R"sh([ $r_n -ge $r_m ]; }} 2>/dev/null; )sh"
    R"sh(r_last() {{ trap - EXIT; [ -z "$r_p" ] || exec "$r_p" serve; r_no "the process limit of this account is reached"; }}; )sh"
    R"sh(r_start() {{ [ -O "$1/." ] && [ -O "$1/.." ] && [ -O "$1/remote-agent" ] || return; [ -L "$1" ] || [ -L "${{1%/*}}" ] && return 1; )sh"
    R"sh(r_p=$1/remote-agent; if r_full; then r_last; fi; )sh"
    R"sh(set -- $(PATH=/usr/bin:/bin:${{PATH-}}; command cd "$1" && LC_ALL=C command ls -ldn . .. remote-agent 2>/dev/null); [ $# = 27 ] || return; )sh"
    R"sh(case "$1 ${{10}} ${{19}}" in "drwx------"*" drwx------"*" -rwx------"*) ;; *) return 1 ;; esac; )sh"
    R"sh("$r_p" try >/dev/null 2>&1; [ $? = 42 ] || return; trap - EXIT; exec "$r_p" serve; }}; )sh"
    R"sh(trap r_last EXIT; r_d="{0}"; for r_g in {1}; do r_start "$r_d/$r_g" || r_p=; done; )sh"
    R"sh(echo; echo "{2}$(PATH=${{PATH-}}:/usr/bin:/bin; command uname -m)$(command xz --version </dev/null >/dev/null 2>&1 && echo " xz")"; )sh"
    R"sh(r_take() {{ IFS= read -r r_n && PATH=${{PATH-}}:/usr/bin:/bin && command dd bs=1 count="$r_n" 2>/dev/null; }}; )sh"
    R"sh((r_take >/dev/null); r_n=$(r_take) && eval "$r_n" || {{ trap - EXIT; exit 1; }})sh";

// The text for use between double quotes in a shell.
std::string folder_text(std::string_view folder) {
  if (folder.empty()) {
    return "${HOME-}/.cache/remote";
  }
  while (folder.size() > 1 && folder.ends_with('/')) {
    folder.remove_suffix(1);
  }
  if (folder == "~") {
    return "${HOME-}";
  }
  if (folder.starts_with("~/")) {
    folder.remove_prefix(2);
  }
  return folder.starts_with('/') ? std::string(folder) : "${HOME-}/" + std::string(folder);
}

std::string join_digests(char separator) {
  std::string digests;
  for (const Agent& agent : agents()) {
    digests += digests.empty() ? "" : std::string(1, separator);
    digests += agent.digest;
  }
  return digests;
}

}  // namespace

std::string agent_version() {
  return join_digests('.');
}

std::string agent_command(std::string_view folder) {
  if (!is_plain_in_every_shell(folder)) {
    throw std::logic_error("not checked: the folder of the agent");
  }
  return "exec /bin/sh -c '" +
         fmt::format(fmt::runtime(command_format), folder_text(folder), join_digests(' '), agent_needed,
                     agent_failed, failed_on_terminal, find_home) +
         "'";
}

const Agent* find_agent(std::string_view architecture) {
  const std::string_view name = architecture == "arm64" ? "aarch64" : architecture;
  const std::span<const Agent> all = agents();
  const auto found = std::ranges::find(all, name, &Agent::architecture);
  return found == all.end() ? nullptr : &*found;
}

std::optional<AgentNeed> parse_agent_need(std::string_view line) {
  if (!line.starts_with(agent_needed)) {
    return std::nullopt;
  }
  line.remove_prefix(agent_needed.size());
  constexpr std::string_view with_xz = " xz";
  if (line.ends_with(with_xz)) {
    return AgentNeed{.architecture = line.substr(0, line.size() - with_xz.size()), .has_xz = true};
  }
  return AgentNeed{.architecture = line, .has_xz = false};
}

std::string agent_installation(const Agent& agent, bool has_xz, std::string_view folder,
                               std::string_view bin) {
  const std::string unpacked = has_xz ? "" : unpack_agent(agent);
  const std::string_view program = has_xz ? agent.xz : unpacked;
  std::string script = fmt::format("r_only={} r_bin={} r_memory={}\n{}", folder.empty() ? "" : "1",
                                   bin.empty() ? "" : remote_path_word(bin),
                                   shell_quote(agent_text("run_agent.py")), agent_text("bootstrap.sh"));
  return fmt::format("{}\n{}{} {} {}\n{}", script.size(), script, agent.digest, program.size(), agent.size,
                     program);
}

}  // namespace remote::server
