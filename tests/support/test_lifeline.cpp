#include "support/test_lifeline.hpp"

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "jobs/link_tokens.hpp"
#include "support/processes.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

namespace remote::test {

wire::LaunchSpec launch_of_two() {
  wire::LaunchSpec spec;
  spec.servers = {{"a", 1, ""}, {"b", 1, ""}};
  spec.tokens = jobs::make_link_tokens(spec.servers.size());
  spec.address = "127.0.0.1";
  spec.port = free_port();
  spec.grace_seconds = 0;
  spec.timeout_seconds = 30;
  return spec;
}

pid_t read_lifeline_pid(const std::filesystem::path& job_folder) {
  const std::string record = read_file(job_folder / "lifeline.pid");
  return parse_number<pid_t>(record.substr(0, record.find(' '))).value();
}

void kill_lifeline(const std::filesystem::path& job_folder) {
  const pid_t lifeline = read_lifeline_pid(job_folder);
  ::kill(lifeline, SIGSTOP);  // so that it starts no other watchdog
  EXPECT_TRUE(eventually([&] { return read_proc(lifeline, "stat").find(") T ") != std::string::npos; }));
  // All of its children: on a busy machine a watchdog may not have its name yet.
  const std::string task = "task/" + std::to_string(lifeline) + "/children";
  for (const std::string& word : split_words(read_proc(lifeline, task))) {
    const pid_t child = parse_number<pid_t>(word).value();
    ::kill(child, SIGKILL);
    EXPECT_TRUE(eventually([&] { return !lives(child); })) << "a child of the lifeline";
  }
  ::kill(lifeline, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !lives(lifeline); })) << "the lifeline";
}

}  // namespace remote::test
