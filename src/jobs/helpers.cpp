#include "jobs/helpers.hpp"

#include <fmt/format.h>

#include "base/shell_quote.hpp"
#include "jobs/keep_program.hpp"

namespace remote::jobs {

std::string mpi_host_line(const MpiHost& host) {
  // The job may start a moment later. The agent is in the program's copy in the jobs folder.
  const std::string folder = shell_quote(host.job_folder);
  const std::string command = fmt::format(
      "tries=0; until CDPATH= cd -- {0} 2>/dev/null; do tries=$((tries + 1)); if [ $tries -ge 300 ]; then "
      "printf 'remote: there is no job'\\''s folder %s\\n' {0} >&2; exit 1; fi; sleep 0.1; done; "
      "agent=../.bin/{1}/remote-agent; "
      "run() {{ $agent try 2>/dev/null; [ $? != 42 ] || exec $agent \"$@\"; "
      "exec python3 -B -S -I ../.bin/{1}/python/run_agent.py $agent \"$@\"; }}; run mpi-order .",
      folder, server_program().digest);
  return fmt::format("{} {} {} {} {}\n", host.name, host.user, host.address, host.port, command);
}

}  // namespace remote::jobs
