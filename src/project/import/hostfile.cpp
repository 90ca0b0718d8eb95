// A hostfile of MPI, DeepSpeed or Horovod.

#include <remote/launch_texts.hpp>

#include "project/import/parts.hpp"

namespace remote::project {

void read_hostfile(std::string_view text, ServerListBuilder& list) {
  for (const LaunchHost& host : parse_hostfile(text, list.file())) {
    FoundServer found;
    found.name = host.name;
    found.where = host.where;
    list.add(found);
    if (host.slots) {
      list.leave_out(host.name, "slots");
    }
  }
}

}  // namespace remote::project
