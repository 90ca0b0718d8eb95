#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "jobs/start.hpp"
#include "support/local_connection.hpp"
#include "support/waiting.hpp"

namespace remote::test {

// A project with two simulated servers, `a` and `b`, and a job store.
struct JobWorld {
  JobWorld() {
    config.project = temp.path();
    config.name = "proj";
    for (const char* name : {"a", "b"}) {
      config::Server server;
      server.name = name;
      server.hostname = name;
      config.servers.push_back(server);
    }
  }

  jobs::Site site() { return {config, store, servers, Cancel()}; }
  std::filesystem::path store_folder() const { return temp.path() / ".remote/jobs"; }

  jobs::NewJob job(const std::string& server, const std::string& command) const {
    jobs::NewJob entry;
    entry.job.id = JobId::random();
    entry.job.server = server;
    entry.job.command = command;
    entry.job.remote_folder = {"~/proj", ".jobs"};
    entry.process.command = command;
    return entry;
  }
  // Starts one job; returns its record.
  Job run(const std::string& server, const std::string& command) {
    return run_all({job(server, command)}).front();
  }
  std::vector<Job> run_all(std::vector<jobs::NewJob> entries) {
    jobs::StartResult result = jobs::start(site(), std::move(entries));
    for (const Error& error : result.errors) {
      ADD_FAILURE() << error.message();
    }
    return std::move(result.jobs);
  }
  // The next command loses its connection: before it, after it, or after this many bytes of its answer.
  void break_next(int Faults::*how, std::size_t cut_bytes) {
    Faults faults;
    faults.*how = servers.commands() + 1;
    faults.cut_bytes = cut_bytes;
    servers.set_faults(faults);
  }
  std::filesystem::path folder(const Job& one) {
    return servers.home(one.server) / "proj/.jobs" / one.id.text();
  }
  std::string file(const Job& one, const std::string& name) {
    return read_file_if_there(folder(one) / name).value_or("");
  }

  TempFolder temp{"remote-world-"};
  config::Config config;
  LocalServers servers;
  jobs::Store store{store_folder()};
};

}  // namespace remote::test
