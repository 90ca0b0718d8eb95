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

// Checks whether servers are ready for a run: each check with its result and a fix.

namespace remote {

enum class CheckStatus {
  ok,
  warn,  // a run would work, but not as well as it could
  fail,  // it would fail
  skip,  // not checked; the detail says why
};

// How to fix a finding.
struct Fix {
  enum class Where {
    server,          // a command line to run on the server; needs no root rights
    server_as_root,  // a command line to run there as root
    here,            // a command line on this machine
    advice,          // a sentence
  };
  Where where = Where::advice;
  std::string text;
  bool harmless =
      false;  // for Where::server: it takes nothing away from any user, so remote may run it itself
  std::string server{};  // the name of the server to run it on, if that is not the finding's server
};

// The result of one check.
struct Finding {
  std::string name;  // stable across versions; docs/check.md lists them
  CheckStatus status = CheckStatus::ok;
  std::string detail;  // for the user; without control characters
  std::optional<Fix> fix{};
};

struct ServerCheck {
  std::string server;
  std::vector<Finding> findings{};  // at least one
  std::optional<Error> error{};     // why it could not be checked; one of the findings then fails
  std::optional<ServerFacts> facts{};

  // True if nothing failed; warnings and skipped checks do not count.
  bool ok() const;
};

struct CheckRequest {
  std::vector<std::string> servers{};  // names or globs; none: all
  std::vector<std::string> well{};     // names or globs: clear the mark ServerFacts::sick of these
  bool deep = false;                   // import torch, and compare the libraries that it loads
  bool bandwidth = false;              // measure the bandwidth between the servers
  std::chrono::seconds burn{0};        // how long all devices compute; 0: no burn
  // The current step, such as "asking the servers", and how many of its items are done. Calls never overlap.
  std::function<void(const std::string& step, std::size_t done, std::size_t all)> on_progress{};
};

struct CheckReport {
  std::vector<ServerCheck> servers;  // in the order of configs.yaml
  std::optional<Burn> burn{};        // the result of CheckRequest::burn
  std::optional<Network> network{};  // how they reach each other; absent with fewer than two servers

  bool ok() const;  // true if every server is ok
};

}  // namespace remote
