#pragma once

#include "agent/host/host.hpp"
#include "agent/serve/stream.hpp"
#include "wire/provision.hpp"

// Prepares the project's Python environment.

namespace remote::agent {

wire::PreparedReply find_prepared(const Host& host, const wire::PreparedRequest& request);
wire::RecordSourceReply record_source(const Host& host, const wire::RecordSourceRequest& request);
wire::RemovePartialsReply remove_partials(const Host& host, const wire::RemovePartialsRequest& request);
void answer_provision(const Host& host, const wire::Provisioning& work, Stream& stream);

}  // namespace remote::agent
