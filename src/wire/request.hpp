#pragma once

#include <string>
#include <variant>

#include "wire/authorize.hpp"
#include "wire/container.hpp"
#include "wire/facts.hpp"
#include "wire/files.hpp"
#include "wire/init_file.hpp"
#include "wire/jobs.hpp"
#include "wire/leases.hpp"
#include "wire/notify.hpp"
#include "wire/pairs.hpp"
#include "wire/peers.hpp"
#include "wire/ports.hpp"
#include "wire/provision.hpp"
#include "wire/run.hpp"
#include "wire/sick_mark.hpp"
#include "wire/slurm.hpp"
#include "wire/stacks.hpp"
#include "wire/start.hpp"
#include "wire/sweep_request.hpp"
#include "wire/trees.hpp"
#include "wire/uninstall.hpp"

// Requests from clients to agents. A request is the first frame of a new stream; data may follow it, and then
// the client's `end`. The agent answers with one or more messages, depending on the request, and its own
// `end`. Meanwhile it sends empty data on stream 0 as a keepalive. The client can end an answer early with
// `abort`. `end` on stream 0 means that no more requests follow, so the agent exits after its last answer.

namespace remote::wire {

// An agent's first message, on stream 0.
struct AgentHello {
  static constexpr std::string_view kind = "hello";

  std::string program;  // its file; "" if the file was removed

  static constexpr auto fields() { return field_list(field("program", &AgentHello::program, a_line(4096))); }
};

// The request could not be answered.
struct Refusal {
  static constexpr std::string_view kind = "refusal";

  std::string reason;

  static constexpr auto fields() { return field_list(field("reason", &Refusal::reason, a_line(1000))); }
};

using Request =
    std::variant<FactsRequest, StateRequest, WorkersRequest, LinesRequest, StopRequest, CleanRequest,
                 FollowRequest, KeepProgramRequest, StartJobsRequest, MakeTreeRequest, UninstallRequest,
                 LeasesRequest, BeginSweepRequest, SweepRequest, StacksRequest, WhyRequest, KeptWhyRequest,
                 ListenRequest, ReachRequest, SendRequest, ContainerRequest, SlurmProgramsRequest,
                 ListenersRequest, WebPortRequest, ClearSickMarkRequest, PathsRequest, MatchesRequest,
                 WrittenRequest, InitFileRequest, PullProjectRequest, CompareFilesRequest, PreparedRequest,
                 RecordSourceRequest, RemovePartialsRequest, ProvisionRequest, AuthorizeRequest,
                 TryNotifyRequest, RunRequest>;
using Reply =
    std::variant<Refusal, FactsReply, StateReply, WorkersReply, LinesReply, StopReply, CleanReply,
                 FollowBegins, FollowEnds, KeepProgramReply, StartJobsReply, MakeTreeReply, UninstallReply,
                 LeasesReply, BeginSweepReply, SweepReply, StacksReply, WhyReply, KeptWhyReply, ListenReply,
                 ReachReply, SendReply, ContainerReply, SlurmProgramsReply, ListenersReply, WebPortReply,
                 ClearSickMarkReply, PathsReply, MatchesReply, WrittenReply, InitFileReply, PullProjectReply,
                 CompareFilesReply, PreparedReply, RecordSourceReply, RemovePartialsReply, ProvisionReply,
                 AuthorizeReply, TryNotifyReply, RunBegins, RunEnds>;

// The most data that may follow a request.
constexpr std::size_t max_request_data = std::size_t{64} << 20U;

}  // namespace remote::wire
