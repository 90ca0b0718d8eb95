#pragma once

#include <chrono>

#include "agent/host/host.hpp"
#include "agent/serve/stream.hpp"
#include "wire/stacks.hpp"

namespace remote::agent {

// Inspects the processes of these jobs. Sends the load, GPUs and disks first. If a disk hangs, no
// files of the project are opened after that. Slow. If another process asks to look at the jobs more than
// `yield_before` before the second sample, it does so first, and the first sample is taken again.
void answer_why(const Host& host, const wire::WhyRequest& request, Stream& stream,
                std::chrono::seconds yield_before = std::chrono::seconds(10));
// Sends the first evidence found.
void answer_kept_why(const Host& host, const wire::KeptWhyRequest& request, Stream& stream);

// `remote-agent why JOBS_FOLDER PROGRAM SECONDS ID...`: prints WhyReply as lines of JSON, for a launch's
// supervisor, which keeps them. PROGRAM: the folder of the server program in .bin. Returns the exit status:
// evidence_shows_waiting, or 0.
int run_why(int count, char** words);

// The exit status if all ranks are only waiting for others (waiting.hpp).
constexpr int evidence_shows_waiting = 42;

}  // namespace remote::agent
