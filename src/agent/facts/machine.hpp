#pragma once

#include <remote/facts.hpp>

#include "agent/host/host.hpp"
#include "wire/facts.hpp"

// The machine and the user's account on it. Only files are read, so both are fast. Any thread.

namespace remote::agent {

// System, processors, limits, installed programs, InfiniBand.
void read_machine(const Host& host, ServerFacts& facts);

// Load, memory and processor time at this moment.
void read_load(const Host& host, wire::FactsReply& reply);

}  // namespace remote::agent
