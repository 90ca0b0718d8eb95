#pragma once

#include <array>
#include <string>
#include <variant>

#include <remote/launch.hpp>

#include "wire/fields.hpp"

// Reasons why ranks fail and launches end, in a form that a launch's servers exchange and the client
// displays.

namespace remote::wire {

// How a rank or a job ended without success.
enum class EndKind {
  exit,           // with an exit code
  signal,         // by a signal
  out_of_memory,  // by the kernel's out-of-memory killer
  gone,           // its processes and its supervisor are gone, and nothing was recorded
};

struct Ending {
  EndKind kind = EndKind::exit;
  int code = 0;  // the exit code, or the number of the signal

  static constexpr auto fields() {
    return field_list(field("kind", &Ending::kind), field("code", &Ending::code, in_range(0, 255)));
  }
  friend bool operator==(const Ending&, const Ending&) = default;
};

// A rank that failed.
struct RankFailure {
  static constexpr std::string_view kind = "rank";

  int rank = 0;
  std::string server;
  Ending ending;
  // It failed because another rank was gone, according to its last output.
  bool after_peer = false;
  // The point of the failure, as a digest of its last line, or the problem of its server (rules::sicknesses).
  std::string mark;

  static constexpr auto fields() {
    return field_list(field("rank", &RankFailure::rank, in_range(0, max_rank)),
                      field("server", &RankFailure::server, at_most(256)),
                      field("ending", &RankFailure::ending), field("after_peer", &RankFailure::after_peer),
                      field("mark", &RankFailure::mark, at_most(64)));
  }
  friend bool operator==(const RankFailure&, const RankFailure&) = default;

  static constexpr int max_rank = 1'000'000;
};

// A server was silent for longer than the limit.
struct ServerLoss {
  static constexpr std::string_view kind = "lost";

  std::string server;

  static constexpr auto fields() { return field_list(field("server", &ServerLoss::server, at_most(256))); }
  friend bool operator==(const ServerLoss&, const ServerLoss&) = default;
};

// No rank has written or computed anything for some time.
struct Hang {
  static constexpr std::string_view kind = "hang";

  int seconds = 0;

  static constexpr auto fields() {
    return field_list(field("seconds", &Hang::seconds, in_range(0, 1 << 30)));
  }
  friend bool operator==(const Hang&, const Hang&) = default;
};

// The coordinator's supervisor died and was restarted; the ranks ran without it in between.
struct SupervisorDeath {
  static constexpr std::string_view kind = "supervisor";

  std::string server;

  static constexpr auto fields() {
    return field_list(field("server", &SupervisorDeath::server, at_most(256)));
  }
  friend bool operator==(const SupervisorDeath&, const SupervisorDeath&) = default;
};

using Cause = std::variant<RankFailure, ServerLoss, Hang, SupervisorDeath>;

// Why a server stops the jobs of a launch. For a failure, only its rank is included.
struct RankEnded {
  static constexpr std::string_view kind = "rank";

  int rank = 0;

  static constexpr auto fields() {
    return field_list(field("rank", &RankEnded::rank, in_range(0, RankFailure::max_rank)));
  }
  friend bool operator==(const RankEnded&, const RankEnded&) = default;
};

using EndReason = std::variant<RankEnded, ServerLoss, Hang>;

inline EndReason end_reason(const Cause& cause) {
  if (const auto* failure = std::get_if<RankFailure>(&cause)) {
    return RankEnded{failure->rank};
  }
  if (const auto* loss = std::get_if<ServerLoss>(&cause)) {
    return *loss;
  }
  if (const auto* death = std::get_if<SupervisorDeath>(&cause)) {
    return ServerLoss{death->server};
  }
  return std::get<Hang>(cause);
}

// After a loss or a hang, there is nothing to wait for; after a failure, the other ranks get a grace.
inline bool has_grace(const EndReason& reason) {
  return std::holds_alternative<RankEnded>(reason);
}

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::EndKind> = {
    std::string_view("exit"), std::string_view("signal"), std::string_view("oom"), std::string_view("gone")};

template <>
inline constexpr std::array remote::wire::enum_names<remote::NoRestart> = {
    std::string_view("cause"),      std::string_view("exit_code"),        std::string_view("repeated"),
    std::string_view("stopped"),    std::string_view("too_few_servers"),  std::string_view("unreached"),
    std::string_view("unfinished"), std::string_view("coordinator_lost"), std::string_view("hang")};
