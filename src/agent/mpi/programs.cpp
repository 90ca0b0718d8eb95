#include "agent/mpi/programs.hpp"

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <sys/prctl.h>
#include <unistd.h>

#include "agent/host/path.hpp"
#include "agent/mpi/child.hpp"
#include "agent/mpi/member.hpp"
#include "agent/mpi/rank.hpp"
#include "agent/mpi/send_order.hpp"

namespace remote::agent {
namespace {

// Ranks run in the working directory of the job's command. $PWD keeps symbolic links in its name.
void set_rank_folder() {
  if (::getenv("REMOTE_RANK_FOLDER") == nullptr) {
    const char* named = ::getenv("PWD");
    const bool is_named = named != nullptr && *named == '/' && is_same_file(named, ".");
    ::setenv("REMOTE_RANK_FOLDER", is_named ? named : find_real_path(".").c_str(), 1);
  }
}

// Keeps this program in memory until its parent, the job's process, exits. If the job's folder is mounted
// noexec, the links to the agent point to /proc/PID/exe of this process.
[[noreturn]] void hold_program() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {
    ::pause();
  }
}

}  // namespace

int run_mpi_program(std::string_view name, int count, char** words) {
  constexpr int wrong_usage = 2;
  if (name == "hold") {
    hold_program();
  }
  set_rank_folder();
  const char* folder = ::getenv("REMOTE_JOB_FOLDER");
  if (name == "order" && count > 0) {
    folder = words[0];
    ++words;
    --count;
  }
  if (folder == nullptr || ::chdir(folder) != 0) {
    exit_with_error("cannot enter the job's folder, REMOTE_JOB_FOLDER");
  }
  // mpirun may put ssh options before the host.
  for (; (name == "agent" || name == "ssh") && count > 0 && words[0][0] == '-'; ++words) {
    --count;
  }
  try {
    if (name == "rank" && count == 1) {
      return run_mpi_rank(words[0]);
    }
    if (name == "member" && count == 0) {
      return run_mpi_member();
    }
    if (count > 0 && name == "agent") {
      return send_order_by_lifeline({words, words + count});
    }
    if (count > 0 && name == "ssh") {
      return send_order_by_ssh({words, words + count});
    }
    if (count > 0 && name == "order") {
      return receive_order({words, words + count});
    }
  } catch (const std::runtime_error& error) {
    exit_with_error(error.what());
  }
  return wrong_usage;
}

}  // namespace remote::agent
