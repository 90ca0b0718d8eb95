#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "jobs/kill.hpp"
#include "jobs/start.hpp"
#include "support/local_connection.hpp"
#include "support/paths.hpp"
#include "support/processes.hpp"
#include "support/test_sshd.hpp"
#include "support/waiting.hpp"

namespace remote::test {

// Cancels a test that would hang, so that it fails and cleans up.
class Limit {
 public:
  explicit Limit(std::chrono::seconds time = std::chrono::seconds(200))
      : watch_([this, time](const std::stop_token& over) {
          std::unique_lock lock(mutex_);
          if (!wake_.wait_for(lock, over, time, [&] { return over.stop_requested(); })) {
            cancel_.cancel();
          }
        }) {}
  const Cancel& cancel() const { return cancel_; }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  Cancel cancel_;
  std::jthread watch_;
};

// A job store and one server, `one`, which is a real sshd. The destructor stops all started jobs and fails
// the test if any of their processes is left.
struct SshJobWorld {
  explicit SshJobWorld(std::vector<std::string> sshd_config = {})
      : sshd(client.public_key(), std::move(sshd_config)) {
    config = client.config();
    config.name = "proj";
    config.servers.push_back(sshd.server(client.key()));
    connector = client.connector();
    make_folders(client.folder() / ".remote");
    write_file_atomic(
        client.folder() / ".remote/configs.yaml",
        fmt::format("name: proj\nconnection: {}\npython: {{manager: system}}\nservers:\n  one: {{hostname: "
                    "127.0.0.1, port: {}, username: {}, private_key: key, known_hosts: "
                    "known_hosts}}\n",
                    to_string(config.connect_by), sshd.port(), own_user()));
  }
  ~SshJobWorld() {
    try {
      KillRequest options;
      options.signal = 9;
      options.grace = std::chrono::seconds(0);
      options.by.text = "test";
      const auto started = store.list({.unfinished_only = true}).jobs;
      const KillResult result = jobs::kill({direct_config(), store, *connector, Cancel()}, started, options);
      for (const Error& error : result.errors) {
        ADD_FAILURE() << error.message();
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    // Does not rely on the code under test. Repeats, because a process may be forking.
    const bool clean = eventually([this] { return processes().empty(); });
    EXPECT_TRUE(clean) << processes().size() << " processes of the jobs were left";
    for (int round = 0; round < 100 && !processes().empty(); ++round) {
      for (const pid_t pid : processes()) {
        ::kill(pid, SIGKILL);
      }
    }
  }
  SshJobWorld(const SshJobWorld&) = delete;
  SshJobWorld& operator=(const SshJobWorld&) = delete;

  // The configuration without a proxy in front of the server.
  config::Config direct_config() const {
    config::Config direct = config;
    direct.servers.at(0).port = sshd.port();
    return direct;
  }
  std::vector<Job> run_all(const std::vector<std::string>& commands,
                           wire::StartupFiles startup_files = wire::StartupFiles::none) {
    std::vector<jobs::NewJob> entries;
    for (const std::string& command : commands) {
      jobs::NewJob entry;
      entry.job.id = JobId::random();
      entry.job.server = "one";
      entry.job.command = command;
      entry.job.remote_folder = {"~/proj", ".jobs"};
      entry.process.command = command;
      entry.process.startup_files = startup_files;
      entries.push_back(std::move(entry));
    }
    jobs::StartResult result =
        jobs::start({direct_config(), store, *connector, Cancel()}, std::move(entries));
    for (const Error& error : result.errors) {
      ADD_FAILURE() << error.message();
    }
    return std::move(result.jobs);
  }
  // Runs the program in this project.
  ExecResult remote(std::vector<std::string> words) const {
    SubprocessSpec spec;
    spec.argv = {test::remote_binary, "--project", client.folder().string()};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.set_env = {{"HOME", client.folder().string()}};
    return run_subprocess(std::move(spec));
  }
  // The processes on the server, including supervisors; with an id, only those of this job.
  std::vector<pid_t> processes(const std::string& id = {}) const {
    return processes_with(id.empty() ? "HOME=" + home().string() : "REMOTE_JOB_ID=" + id);
  }
  std::filesystem::path home() const { return sshd.folder(); }
  std::filesystem::path file(const Job& job, const std::string& name) const {
    return home() / "proj/.jobs" / job.id.text() / name;
  }

  TestClient client;
  TestSshd sshd;
  config::Config config;
  std::unique_ptr<ssh::Connector> connector;
  jobs::Store store{client.folder() / ".remote/jobs"};
};

}  // namespace remote::test
