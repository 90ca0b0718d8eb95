#pragma once

#include <remote/facts.hpp>

#include "agent/host/host.hpp"
#include "wire/facts.hpp"

// Facts about the machine and the user's account on it. Both functions are fast, because they only read
// files. Any thread.

namespace remote::agent {

// Reads the system, processors, limits, installed programs and InfiniBand.
void read_machine(const Host& host, ServerFacts& facts);

// Reads the current load, memory and processor time.
void read_load(const Host& host, wire::FactsReply& reply);

}  // namespace remote::agent
