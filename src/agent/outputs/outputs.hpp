#pragma once

#include "agent/host/host.hpp"
#include "agent/serve/stream.hpp"
#include "wire/files.hpp"

// Lists files that jobs have written. Reads only names, types, sizes and times.

namespace remote::agent {

wire::PathsReply find_path_kinds(const Host& host, const wire::PathsRequest& request);
// Skips names that contain a newline.
wire::MatchesReply find_matching_names(const Host& host, const wire::MatchesRequest& request);
// An output that is a link is followed; links in it are not.
void answer_written(const Host& host, const wire::WrittenRequest& request, Stream& stream);

}  // namespace remote::agent
