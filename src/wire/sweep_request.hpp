#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "wire/jobs.hpp"
#include "wire/start.hpp"
#include "wire/sweep.hpp"

// Requests about a sweep on one of its servers (docs/sweep.md), and the files that its supervisor reads
// there.

namespace remote::wire {

constexpr std::size_t max_sweep_points = 10'000;
constexpr std::size_t max_sweep_servers = 10'000;
constexpr int max_sweep_slots = 1'000'000;

// How to start the points on this server, by number. The agent keeps this as long as the sweep exists.
struct SweepPoints {
  JobSpec spec{};  // for all points
  std::vector<OwnSpec> own{};
  int slots = 1;                      // the number of points that run at the same time
  std::optional<LeaseTerms> lease{};  // leased by each point
  int retry = 0;                      // how often a failed point is run again

  static constexpr auto fields() {
    using P = SweepPoints;
    return field_list(field("spec", &P::spec), field("own", &P::own, at_most(max_sweep_points)),
                      field("slots", &P::slots, in_range(1, max_sweep_slots)), field("lease", &P::lease),
                      field("retry", &P::retry, in_range(0, 1'000'000)));
  }
};

// A run of the sweep: its start, or its continuation.
struct SweepRun {
  std::string own;                   // this server's name
  std::vector<std::string> servers;  // the first one distributes the points
  LinkTokens tokens;
  std::string address;                // the first server's
  int port = 0;                       // 0 if there is only one server
  std::vector<std::string> points{};  // job ids, by number; "": this point is not run now
  std::vector<std::string> busy{};    // points of earlier runs that are still running on this server

  static constexpr auto fields() {
    using R = SweepRun;
    return field_list(
        field("own", &R::own, at_most(256)), field("servers", &R::servers, at_most(max_sweep_servers)),
        field("tokens", &R::tokens, a_word("", max_sweep_servers)),
        field("address", &R::address, at_most(1024)), field("port", &R::port, in_range(0, 65535)),
        field("points", &R::points, a_word("", max_sweep_points)),
        field("busy", &R::busy, ids(max_sweep_points)));
  }
};

// Starts the supervisor of a sweep. A SweepToBegin in CBOR follows as data, because it may be larger than a
// message.
struct BeginSweepRequest {
  static constexpr std::string_view kind = "begin_sweep";

  static constexpr auto fields() { return field_list(); }
};

struct SweepToBegin {
  JobsPlace place;
  ServerProgram program;
  std::string launch;
  std::optional<SweepPoints> points{};  // absent if the server already has them
  SweepRun run;

  static constexpr auto fields() {
    using S = SweepToBegin;
    return field_list(field("place", &S::place), field("program", &S::program),
                      field("launch", &S::launch, an_id()), field("points", &S::points),
                      field("run", &S::run));
  }
};

// The supervisor is running.
struct BeginSweepReply {
  static constexpr std::string_view kind = "begin_sweep";

  static constexpr auto fields() { return field_list(); }
};

enum class SweepAsk {
  look,
  stop,  // start no more points here, then report
  drop,  // remove everything of the sweep except its jobs
};

// The answer consists of several messages.
struct SweepRequest {
  static constexpr std::string_view kind = "sweep";

  JobsPlace place;
  std::string launch;
  SweepAsk ask = SweepAsk::look;
  std::vector<std::string> waiting{};  // points that may not have started
  std::vector<std::string> tails{};    // points whose last lines are requested

  static constexpr auto fields() {
    using R = SweepRequest;
    return field_list(field("place", &R::place), field("launch", &R::launch, an_id()), field("ask", &R::ask),
                      field("waiting", &R::waiting, ids(max_sweep_points)),
                      field("tails", &R::tails, ids(max_sweep_points)));
  }
};

// The supervisor of a sweep on a server.
enum class SweepRunner {
  alive,
  dead,
  stopped,  // by a client
  done,
  none,  // the server has no data about the sweep
};

struct GivenPoint {
  std::string point;
  std::string server;

  static constexpr auto fields() {
    return field_list(field("point", &GivenPoint::point, an_id()),
                      field("server", &GivenPoint::server, at_most(256)));
  }
};

struct SweepReply {
  static constexpr std::string_view kind = "sweep";

  SweepRunner runner = SweepRunner::none;
  std::string note{};               // a problem
  std::vector<GivenPoint> given{};  // waiting points that this server assigned and that have not started here
  std::vector<std::string> begun{};      // waiting points that started here
  std::optional<std::string> tail_of{};  // a point
  std::vector<std::string> tail{};       // its last lines with digits; untrusted text

  static constexpr auto fields() {
    using R = SweepReply;
    return field_list(field("runner", &R::runner), field("note", &R::note, a_line(1000)),
                      field("given", &R::given, at_most(max_sweep_points)),
                      field("begun", &R::begun, ids(max_sweep_points)),
                      field("tail_of", &R::tail_of, an_id()), field("tail", &R::tail, at_most(1000)));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::SweepAsk> = {
    std::string_view("look"), std::string_view("stop"), std::string_view("drop")};

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::SweepRunner> = {
    std::string_view("alive"), std::string_view("dead"), std::string_view("stopped"),
    std::string_view("done"), std::string_view("none")};
