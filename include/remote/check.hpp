#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <remote/burn.hpp>
#include <remote/error.hpp>
#include <remote/facts.hpp>
#include <remote/network.hpp>

// Whether servers are fit for a run: what was looked at, how it is, and what would mend it.

namespace remote {

enum class CheckStatus {
  ok,
  warn,  // a run works, but worse than it could
  fail,  // a run would fail, or end in trouble
  skip,  // could not be looked at; the detail says why
};

// What mends a finding.
struct Fix {
  enum class Where {
    server,          // a command line there, which the login may run
    server_as_root,  // a command line there, which needs root
    here,            // a command line on this machine
    advice,          // a sentence
  };
  Where where = Where::advice;
  std::string text;
  bool harmless =
      false;  // of Where::server: it takes nothing away from anybody, so that it may be run for the user
  std::string server{};  // of a command for another server than the finding's: its name
};

// One thing that was looked at.
struct Finding {
  std::string name;  // the same in all versions; docs/check.md lists them
  CheckStatus status = CheckStatus::ok;
  std::string detail;  // what was found, for a person; without control characters
  std::optional<Fix> fix{};
};

struct ServerCheck {
  std::string server;
  std::vector<Finding> findings{};  // one at least
  std::optional<Error> error{};     // why it could not be asked; one of the findings fails by it
  std::optional<ServerFacts> facts{};

  // Nothing failed. Warnings and what was skipped do not count.
  bool ok() const;
};

struct CheckRequest {
  std::vector<std::string> servers{};  // names or globs; none: all
  std::vector<std::string> well{};     // names or globs: these are not sick any more (ServerFacts::sick)
  bool deep = false;                   // import torch, and compare the libraries that it has loaded
  bool bandwidth = false;              // measure how fast they send to each other
  std::chrono::seconds burn{0};        // how long all devices are to compute; 0: not at all
  // What it is at: "asking the servers", and how many of them (or of other things) are done. One call at a
  // time.
  std::function<void(const std::string& step, std::size_t done, std::size_t all)> on_progress{};
};

struct CheckReport {
  std::vector<ServerCheck> servers;  // in the order of the file
  std::optional<Burn> burn{};        // what CheckRequest::burn found
  std::optional<Network> network{};  // how they reach each other; absent where there are no two

  bool ok() const;  // every server is
};

}  // namespace remote
