#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <remote/facts.hpp>

#include "config/config.hpp"
#include "servers/action.hpp"
#include "servers/gpus.hpp"

// What a server is and has, as src/server/facts.sh tells it. The lines are described in docs/protocol.md.

namespace remote::servers {

struct FactsAnswer {
  ServerFacts facts;       // its GPUs are read by gpu_facts()
  std::int64_t clock = 0;  // the server's, seconds since the epoch, when it began to answer

  void take(AnswerLine& line);
  void check() const;
  // Throws Error for an answer about GPUs that is cut short.
  GpuFacts gpu_facts() const { return gpus_.facts(); }

 private:
  DiskFacts& disk(AnswerLine& line);
  void take_disk(AnswerLine& line);
  void take_package(std::string_view folder, bool distribution);

  std::set<std::string, std::less<>> seen_;  // keys
  std::set<std::string> there_;              // of what a disk may be
  std::set<std::string> writable_;
  GpuAnswer gpus_;
};

// Where the script looks, for tests.
struct FactsPlaces {
  std::string root{};  // put before the paths of the system's files
  std::string shm = "/dev/shm";
};

Action<FactsAnswer> facts_action(const config::Config& config, const config::Server& server,
                                 const FactsPlaces& places = {});

// Asks, and compares the clocks. Throws Error and Interrupted.
ServerFacts facts_of(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                     const Cancel& cancel);

// This machine's clock, in milliseconds since the epoch.
std::int64_t wall_ms();

// Seconds that a server's clock is ahead, by what it said between two moments of this machine's clock
// (milliseconds since the epoch).
double clock_difference(std::int64_t server_seconds, std::int64_t asked_ms, std::int64_t answered_ms);

}  // namespace remote::servers
