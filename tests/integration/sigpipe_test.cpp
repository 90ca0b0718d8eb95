// A broken link does not kill a program that uses the library, even if the program leaves SIGPIPE at its
// default.

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.hpp"
#include "config/config.hpp"
#include "project/core.hpp"
#include "ssh/rsync_tunnel.hpp"
#include "support/local_connection.hpp"
#include "support/paths.hpp"

namespace remote {
namespace {

// Writes to a pipe without readers. True if that was an error and did not kill the process.
bool write_to_nobody() {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) {
    return false;
  }
  ::close(ends[0]);
  return ::write(ends[1], "x", 1) < 0 && errno == EPIPE;
}

TEST(Sigpipe, IsHeldBackOnThisThreadAndOnThoseMadeUnderTheGuard) {
  EXPECT_EXIT(
      {
        std::signal(SIGPIPE, SIG_DFL);
        bool well = true;
        {
          const SigpipeGuard guard;
          well = write_to_nobody();
          {
            const SigpipeGuard again;
            well = write_to_nobody() && well;
          }
          std::thread([&] { well = write_to_nobody() && well; }).join();
        }
        sigset_t mask;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        well = well && sigismember(&mask, SIGPIPE) == 0;
        ::_exit(well ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Sigpipe, WithoutTheGuardEverythingIsAsBefore) {
  EXPECT_EXIT(
      {
        std::signal(SIGPIPE, SIG_DFL);
        { const SigpipeGuard guard; }
        write_to_nobody();
        ::_exit(0);
      },
      testing::KilledBySignal(SIGPIPE), "");
}

TEST(Sigpipe, AnRsyncThatEndsTooEarlyIsNoSignal) {
  // Reads nothing from the server, although the server keeps sending.
  const TempFolder bin;
  write_file_atomic(bin.path() / "rsync",
                    "#!/bin/sh\n[ \"$1\" != --version ] || exec echo 'rsync  version 3.2.7  protocol version "
                    "31'\n$2 host sh -c 'for i in 1 2 3 4 5; do echo $i; sleep 0.05; done' </dev/null | :\n",
                    0755);
  EXPECT_EXIT(
      {
        test::LocalServers servers;
        ::setenv("PATH", (bin.path().string() + ":" + std::getenv("PATH")).c_str(), 1);
        std::signal(SIGPIPE, SIG_DFL);
        const SigpipeGuard guard;
        ssh::RsyncRequest request;
        request.pipe_program = test::remote_binary;
        const auto result = ssh::run_rsync(*servers.connect("a"), request, Cancel());
        ::_exit(result.server_began ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Sigpipe, EachCallOfTheApiHoldsItBack) {
  EXPECT_EXIT(
      {
        const auto servers = std::make_shared<test::LocalServers>();
        make_folders(servers->home("a") / "proj");
        std::signal(SIGPIPE, SIG_DFL);
        const TempFolder folder;
        make_folders(folder.path() / ".remote");
        write_file_atomic(folder.path() / ".remote/configs.yaml",
                          "name: proj\npython: {manager: system}\nservers: {a: {hostname: a}}\n");
        Project project = project::project_of(
            std::make_unique<project::State>(config::load(folder.path()), Hooks{}, test::share(servers)));
        bool well = false;
        RunRequest request;
        request.command = "echo hi";
        request.on_output = [&](std::size_t, OutputStream, std::string_view) { well = write_to_nobody(); };
        project.run(request);
        ::_exit(well ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace remote
