#include <string_view>

#include <gmock/gmock.h>
#include <unistd.h>

#include "agent/job/exec_job.hpp"
#include "agent/mpi/programs.hpp"
#include "agent/notify/notify.hpp"
#include "agent/run/exec_run.hpp"
#include "agent/tree/trees.hpp"
#include "agent/uninstall/uninstall.hpp"
#include "crash_trace.hpp"

// The agent restarts its own program, which is this one in tests.
int main(int count, char** arguments) {
  if (count == 2 && arguments[1] == std::string_view("mpi-hold")) {
    ::_exit(remote::agent::run_mpi_program("hold", 0, nullptr));
  }
  const std::string_view command = count > 2 ? arguments[1] : "";
  if (command == "land-trees") {
    ::_exit(remote::agent::run_land_trees(arguments[2]));
  }
  if (command == "exec-job") {
    ::_exit(remote::agent::run_exec_job(count - 2, arguments + 2));
  }
  if (command == "notify") {
    ::_exit(remote::agent::run_notify(count - 2, arguments + 2));
  }
  if (command == "exec-run") {
    ::_exit(remote::agent::run_exec_run(count - 2, arguments + 2));
  }
  if (command == "uninstall") {
    ::_exit(remote::agent::run_uninstall(count - 2, arguments + 2));
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers print their own traces
  remote::agent::test::trace_crashes();
#endif
  ::testing::InitGoogleMock(&count, arguments);
  return RUN_ALL_TESTS();
}
