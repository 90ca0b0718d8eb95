#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "wire/cause.hpp"
#include "wire/sweep.hpp"

// The messages between the servers of one launch or sweep. The first server is the coordinator; the others
// are members, each with one link to it. A receiver does not trust a sender beyond its role: a member's
// reports are attributed to the name that its token proves, and the coordinator can only name checkpoints
// that the member has offered.

namespace remote::wire {

constexpr std::size_t max_server_name = 256;
constexpr std::size_t max_checkpoints = 8;
constexpr std::size_t max_checkpoint_name = 1200;
constexpr int max_attempt = 1'000'000;

// The first message from a member. Its encryption proves which member it is.
struct Hello {
  static constexpr std::string_view kind = "hello";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const Hello&, const Hello&) = default;
};

// The coordinator's answer.
struct Welcome {
  static constexpr std::string_view kind = "welcome";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// A sign of life.
struct Beat {
  static constexpr std::string_view kind = "beat";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const Beat&, const Beat&) = default;
};

// The sender's jobs have ended, and it disconnects.
struct Bye {
  static constexpr std::string_view kind = "bye";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const Bye&, const Bye&) = default;
};

// The coordinator's answer to a member's Bye, after it has recorded that in its journal.
struct ByeNoted {
  static constexpr std::string_view kind = "bye_noted";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const ByeNoted&, const ByeNoted&) = default;
};

struct EndLaunch {
  static constexpr std::string_view kind = "end";
  EndReason reason;
  static constexpr auto fields() { return field_list(field("reason", &EndLaunch::reason)); }
  friend bool operator==(const EndLaunch&, const EndLaunch&) = default;
};

// From a member of an elastic launch: its agent has left, and the others may continue.
struct Left {
  static constexpr std::string_view kind = "left";
  EndReason reason;
  static constexpr auto fields() { return field_list(field("reason", &Left::reason)); }
  friend bool operator==(const Left&, const Left&) = default;
};

// From the coordinator: an elastic launch continues without a server.
struct ContinueWithout {
  static constexpr std::string_view kind = "without";
  std::string server;
  EndReason reason;
  static constexpr auto fields() {
    return field_list(field("server", &ContinueWithout::server, at_most(max_server_name)),
                      field("reason", &ContinueWithout::reason));
  }
  friend bool operator==(const ContinueWithout&, const ContinueWithout&) = default;
};

struct JobFailed {
  static constexpr std::string_view kind = "failed";
  RankFailure failure;
  static constexpr auto fields() { return field_list(field("failure", &JobFailed::failure)); }
  friend bool operator==(const JobFailed&, const JobFailed&) = default;
};

// A user has stopped a job of the sender.
struct JobStopped {
  static constexpr std::string_view kind = "stopped";
  int rank = 0;
  std::int64_t milliseconds = 0;  // from the stop until the job ended
  static constexpr auto fields() {
    return field_list(field("rank", &JobStopped::rank, in_range(0, RankFailure::max_rank)),
                      field("milliseconds", &JobStopped::milliseconds, in_range(0, 1LL << 40)));
  }
  friend bool operator==(const JobStopped&, const JobStopped&) = default;
};

// The last lines of a failed rank, for the notification.
struct LastLines {
  static constexpr std::string_view kind = "last_lines";
  int rank = 0;
  std::string text;
  static constexpr auto fields() {
    return field_list(field("rank", &LastLines::rank, in_range(0, RankFailure::max_rank)),
                      field("text", &LastLines::text, at_most(4096)));
  }
  friend bool operator==(const LastLines&, const LastLines&) = default;
};

// How an attempt has ended on one server.
enum class OutcomeState {
  running,
  succeeded,
  failed,           // with `failure`
  ended_for_good,   // a user has stopped a job, so no other attempt follows
  failed_for_good,  // a process of it cannot be stopped, or its supervisor is gone
};

struct Outcome {
  OutcomeState state = OutcomeState::running;
  int rank = 0;  // of the job with the final end
  std::optional<RankFailure> failure = {};
  static constexpr auto fields() {
    return field_list(field("state", &Outcome::state),
                      field("rank", &Outcome::rank, in_range(0, RankFailure::max_rank)),
                      field("failure", &Outcome::failure));
  }
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// From a member of a launch with restarts, which asks to renew its lease.
struct AskLease {
  static constexpr std::string_view kind = "ask";
  std::uint64_t question = 0;
  int attempt = 0;  // the attempt of its ranks
  int ended = 0;    // the newest attempt without processes on this server
  Outcome outcome;
  std::vector<std::string>
      checkpoints;  // complete ones, newest first; only while no process of an attempt is alive
  static constexpr auto fields() {
    return field_list(field("question", &AskLease::question, in_range(0, 1LL << 53)),
                      field("attempt", &AskLease::attempt, in_range(0, max_attempt)),
                      field("ended", &AskLease::ended, in_range(0, max_attempt)),
                      field("outcome", &AskLease::outcome),
                      field("checkpoints", &AskLease::checkpoints, at_most(max_checkpoint_name)));
  }
  friend bool operator==(const AskLease&, const AskLease&) = default;
};

// From the coordinator: the member should ask for a lease now.
struct AskNow {
  static constexpr std::string_view kind = "ask_now";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const AskNow&, const AskNow&) = default;
};

// The ranks of a member in an attempt.
struct Shape {
  int port = 0;
  int world_size = 0;
  int first_rank = 0;
  int node_rank = 0;
  int nodes = 0;
  std::string resume_from = {};   // a checkpoint that the member offered; empty: start from the beginning
  std::optional<Cause> why = {};  // why the last attempt ended; absent for the first attempt
  static constexpr auto fields() {
    return field_list(field("port", &Shape::port, in_range(0, 65535)),
                      field("world_size", &Shape::world_size, in_range(0, RankFailure::max_rank)),
                      field("first_rank", &Shape::first_rank, in_range(0, RankFailure::max_rank)),
                      field("node_rank", &Shape::node_rank, in_range(0, RankFailure::max_rank)),
                      field("nodes", &Shape::nodes, in_range(0, RankFailure::max_rank)),
                      field("resume_from", &Shape::resume_from, at_most(max_checkpoint_name)),
                      field("why", &Shape::why));
  }
  friend bool operator==(const Shape&, const Shape&) = default;
};

// The coordinator's answer to AskLease: the lease is renewed for ranks of this attempt.
struct GrantLease {
  static constexpr std::string_view kind = "grant";
  std::uint64_t question = 0;
  int attempt = 0;
  Shape shape;
  static constexpr auto fields() {
    return field_list(field("question", &GrantLease::question, in_range(0, 1LL << 53)),
                      field("attempt", &GrantLease::attempt, in_range(0, max_attempt)),
                      field("shape", &GrantLease::shape));
  }
  friend bool operator==(const GrantLease&, const GrantLease&) = default;
};

// From the coordinator: the ranks of this attempt have to be stopped.
struct StopAttempt {
  static constexpr std::string_view kind = "stop";
  int attempt = 0;
  static constexpr auto fields() {
    return field_list(field("attempt", &StopAttempt::attempt, in_range(0, max_attempt)));
  }
  friend bool operator==(const StopAttempt&, const StopAttempt&) = default;
};

// From the coordinator: no other attempt follows.
struct NoMoreAttempts {
  static constexpr std::string_view kind = "over";
  std::optional<EndReason> reason = {};  // absent: nothing has to be stopped
  static constexpr auto fields() { return field_list(field("reason", &NoMoreAttempts::reason)); }
  friend bool operator==(const NoMoreAttempts&, const NoMoreAttempts&) = default;
};

// From the coordinator: this member is dropped, because its server has this problem (rules::sicknesses).
struct MarkSick {
  static constexpr std::string_view kind = "sick";
  std::string mark;
  static constexpr auto fields() { return field_list(field("mark", &MarkSick::mark, at_most(64))); }
  friend bool operator==(const MarkSick&, const MarkSick&) = default;
};

// From a member, with hang detection: how long its ranks have written nothing and computed nothing. Absent:
// no rank is running.
struct Stillness {
  static constexpr std::string_view kind = "still";
  std::optional<double> silent_seconds = {};
  std::optional<double> idle_seconds = {};
  static constexpr auto fields() {
    return field_list(field("silent", &Stillness::silent_seconds, in_range(0, 1LL << 40)),
                      field("idle", &Stillness::idle_seconds, in_range(0, 1LL << 40)));
  }
  friend bool operator==(const Stillness&, const Stillness&) = default;
};

// From the coordinator: collect the stacks of all ranks.
struct TakeEvidence {
  static constexpr std::string_view kind = "take_evidence";
  int number = 0;
  static constexpr auto fields() {
    return field_list(field("number", &TakeEvidence::number, in_range(0, 1 << 30)));
  }
  friend bool operator==(const TakeEvidence&, const TakeEvidence&) = default;
};

// From a member: the evidence was collected.
struct EvidenceTaken {
  static constexpr std::string_view kind = "evidence_taken";
  int number = 0;
  bool all_wait = false;  // all of its ranks are only waiting for others
  static constexpr auto fields() {
    return field_list(field("number", &EvidenceTaken::number, in_range(0, 1 << 30)),
                      field("all_wait", &EvidenceTaken::all_wait));
  }
  friend bool operator==(const EvidenceTaken&, const EvidenceTaken&) = default;
};

// From the coordinator: the launch hangs; keep the evidence.
struct Hangs {
  static constexpr std::string_view kind = "hangs";
  int seconds = 0;
  static constexpr auto fields() {
    return field_list(field("seconds", &Hangs::seconds, in_range(0, 1 << 30)));
  }
  friend bool operator==(const Hangs&, const Hangs&) = default;
};

// From the coordinator: it does not hang; drop the evidence.
struct DropEvidence {
  static constexpr std::string_view kind = "drop_evidence";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const DropEvidence&, const DropEvidence&) = default;
};

// From the coordinator: the launch hung and has continued.
struct Continued {
  static constexpr std::string_view kind = "continued";
  static constexpr auto fields() { return field_list(); }
  friend bool operator==(const Continued&, const Continued&) = default;
};

// From the coordinator: mpirun's command for this server, which is a daemon's name and its arguments. Without
// words: mpirun has exited, and no command follows.
struct MpiOrder {
  static constexpr std::string_view kind = "mpi_order";
  std::vector<std::string> words;
  static constexpr auto fields() { return field_list(field("words", &MpiOrder::words, at_most(32768))); }
  friend bool operator==(const MpiOrder&, const MpiOrder&) = default;
};

// A launch that waits for its leases on several servers (rules/lease_turns.hpp).
enum class LeaseTurn {
  waiting,  // in line, but has to wait for another server
  in_line,  // takes the lease as soon as possible
  held,
  started,
};

// Sent by a member.
struct LeaseReport {
  static constexpr std::string_view kind = "lease";
  std::string machine;  // a digest of the machine's id
  LeaseTurn state = LeaseTurn::waiting;
  int port = 0;  // for `started`: rank 0's; 0: none
  static constexpr auto fields() {
    return field_list(field("machine", &LeaseReport::machine, a_word("", 64)),
                      field("state", &LeaseReport::state),
                      field("port", &LeaseReport::port, in_range(0, 65535)));
  }
  friend bool operator==(const LeaseReport&, const LeaseReport&) = default;
};

enum class LeaseAction { wait, take, start };

// Sent by the coordinator.
struct LeaseOrder {
  static constexpr std::string_view kind = "lease_order";
  LeaseAction action = LeaseAction::wait;
  int port = 0;  // for `start`
  static constexpr auto fields() {
    return field_list(field("action", &LeaseOrder::action),
                      field("port", &LeaseOrder::port, in_range(0, 65535)));
  }
  friend bool operator==(const LeaseOrder&, const LeaseOrder&) = default;
};

// Exchanged between the servers of a sweep.
struct SweepNote {
  static constexpr std::string_view kind = "sweep";
  SweepMessage message;
  static constexpr auto fields() { return field_list(field("message", &SweepNote::message)); }
  friend bool operator==(const SweepNote&, const SweepNote&) = default;
};

using LinkMessage = std::variant<Hello, Welcome, Beat, Bye, ByeNoted, EndLaunch, Left, ContinueWithout,
                                 JobFailed, JobStopped, LastLines, AskLease, AskNow, GrantLease, StopAttempt,
                                 NoMoreAttempts, MarkSick, Stillness, TakeEvidence, EvidenceTaken, Hangs,
                                 DropEvidence, Continued, MpiOrder, LeaseReport, LeaseOrder, SweepNote>;

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::OutcomeState> = {
    std::string_view("running"), std::string_view("succeeded"), std::string_view("failed"),
    std::string_view("ended_for_good"), std::string_view("failed_for_good")};

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::LeaseTurn> = {
    std::string_view("waiting"), std::string_view("in_line"), std::string_view("held"),
    std::string_view("started")};

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::LeaseAction> = {
    std::string_view("wait"), std::string_view("take"), std::string_view("start")};
