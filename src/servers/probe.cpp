#include "servers/probe.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <remote/error.hpp>

namespace remote::servers {
namespace {

constexpr std::size_t longest_text = 100;

std::string address(AnswerLine& line) {
  return line.name(".:%");
}

int port(AnswerLine& line) {
  return line.number(1, 65535);
}

// What is left of the line, for the name of a thing.
std::string full_name(AnswerLine& line, std::size_t longest) {
  const std::string_view found = line.rest();
  const bool good =
      !found.empty() && found.size() <= longest &&
      std::none_of(found.begin(), found.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!good) {
    line.refuse("a name is wrong");
  }
  return std::string(found);
}

void read_route(AnswerLine& line, ProbeAnswer& answer) {
  const std::string_view how = line.word();
  if (how == "via") {
    answer.interface = line.name();
    answer.master_address = address(line);
    if (line.more()) {
      answer.source = address(line);
    }
  } else if (how == "unknown") {
    answer.master_address = address(line);
  } else if (how == "unresolved") {
    answer.resolved = false;
  } else {
    line.refuse("a way is wrong");
  }
}

void read_port(AnswerLine& line, ProbeAnswer& answer) {
  port(line);
  answer.port_free =
      line.choice<bool>(line.word(), {{"free", true}, {"taken", false}}, "a port's state is wrong");
  if (*answer.port_free) {
    return;
  }
  PortHolder& holder = answer.holder.emplace();
  holder.user = line.name();
  if (line.more()) {
    holder.pid = line.number(1, 1 << 30);
    holder.program = full_name(line, 64);
  }
}

std::optional<ProbeAnswer::Mpi> read_mpi(AnswerLine& line) {
  const std::string_view kind = line.word();
  if (kind == "none") {
    return std::nullopt;
  }
  ProbeAnswer::Mpi mpi;
  mpi.hydra = line.choice<bool>(kind, {{"openmpi", false}, {"hydra", true}}, "an MPI is wrong");
  mpi.version = line.name();
  mpi.has_daemon = line.choice<bool>(line.word(), {{"whole", true}, {"client", false}}, "an MPI is wrong");
  mpi.root = line.choice<bool>(line.word(), {{"root", true}, {"user", false}}, "a login is wrong");
  return mpi;
}

// A number of inodes. CephFS has no count of free ones and says -1, which programs print with or without a
// sign: `unknown` then.
std::uint64_t inodes(AnswerLine& line, std::uint64_t unknown) {
  const std::string_view word = line.word();
  if (word.starts_with('-')) {
    line.number_in<std::int64_t>(word, std::numeric_limits<std::int64_t>::min(), -1);
    return unknown;
  }
  return line.number_in<std::uint64_t>(word, 0);
}

ProbeAnswer::Room read_room(AnswerLine& line) {
  const auto block = line.number<std::uint64_t>(1, 1U << 30U);
  ProbeAnswer::Room room;
  room.free_bytes = block * line.number<std::uint64_t>(0, (std::uint64_t{1} << 62U) / block);
  room.inodes = inodes(line, 0);  // 0: not counted, so none can be short
  room.free_inodes = inodes(line, std::numeric_limits<std::uint64_t>::max());
  return room;
}

}  // namespace

void ProbeAnswer::take(AnswerLine& line) {
  if (line.kind() != "probe") {
    line.refuse_kind();
  }
  const std::string_view key = line.word();
  if (key == "holder") {
    GpuHolder& found = gpu_holders.emplace_back();
    found.pid = line.pid();
    found.user = line.name();
    if (const std::string_view gpu = line.word(); gpu != "-") {
      found.gpu = line.number_in(gpu, 0, 1023);
    }
    if (gpu_holders.size() > 32) {
      line.refuse("too many of them");
    }
    line.end();
    return;
  }
  if (key == "model") {
    models.push_back(full_name(line, longest_text));
    if (models.size() > 64) {
      line.refuse("too many of them");
    }
    return;
  }
  if (!seen_.emplace(key).second) {
    line.refuse("a key stands twice");
  }
  if (key == "host") {
    host = line.name();
  } else if (key == "cpus") {
    cpus = line.number(1, 1 << 20);
  } else if (key == "gpus") {
    gpus = line.number(0, 1 << 12);
  } else if (key == "python") {
    const std::string version = line.name(".");
    if (version != "none") {
      python = version;
    }
  } else if (key == "route") {
    read_route(line, *this);
  } else if (key == "port") {
    read_port(line, *this);
  } else if (key == "mpi") {
    mpi = read_mpi(line);
  } else if (key == "suggest") {
    suggested_port = port(line);
  } else if (key == "second") {
    second_port = port(line);
  } else if (key == "room") {
    room = read_room(line);
  } else if (key == "shm") {
    shm_free = read_room(line).free_bytes;
  } else if (key == "clock") {
    clock = line.number<std::int64_t>(0, std::int64_t{1} << 40);
  } else if (key == "missing") {
    missing = line.name();
  } else if (!logout.take(key, line) && !take_version(key, line)) {
    line.refuse("a key is not known");
  }
  line.end();
}

bool ProbeAnswer::take_version(std::string_view key, AnswerLine& line) {
  if (key == "torch") {
    torch = line.name("._-+");
  } else if (key == "cuda") {
    cuda = line.name("._-+");
  } else if (key == "hip") {
    hip = line.name("._-+");
  } else if (key == "env_python") {
    env_python = line.name(".");
  } else if (key == "os") {
    os = full_name(line, longest_text);
  } else if (key == "kernel") {
    kernel = full_name(line, longest_text);
  } else if (key == "driver") {
    driver = full_name(line, longest_text);
  } else {
    return false;
  }
  return true;
}

void ProbeAnswer::check() const {
  for (const std::string_view key : {"host", "cpus", "gpus", "python", "route"}) {
    if (!seen_.contains(key)) {
      throw Error("the server's answer is not understood", fmt::format("nothing about '{}' in it", key))
          .mended_by(Remedy::tell_more);
    }
  }
}

Action<ProbeAnswer> probe_action(const ProbeRequest& request) {
  Action<ProbeAnswer> action;
  action.what = "probe";
  action.script.set("activate", request.activate)
      .set("addr", request.master_addr)
      .set("port", request.master_port ? std::to_string(*request.master_port) : "")
      .set("ip", request.ip_program)
      .set("program", request.program)
      .set("mpi", request.mpi ? "1" : "")
      .set("look", request.project.empty() ? "" : "1")
      .set_path("project", request.project)
      .set_path("env", request.environment)
      .set("root", request.root)
      .add("room.sh")
      .add("processes.sh")
      .add("python.sh")
      .add("logind.sh")
      .add("probe.sh");
  action.timeout = std::chrono::seconds(30);
  action.watchful = true;
  return action;
}

int choose_port(const ProbeAnswer& master, std::optional<int> wanted) {
  if (wanted && *wanted != 0) {
    if (master.port_free.value_or(true)) {
      return *wanted;
    }
    std::string holder = "it is taken";
    if (master.holder && master.holder->pid) {
      holder += fmt::format(" by {} (pid {}, user {})", master.holder->program, *master.holder->pid,
                            master.holder->user);
    } else if (master.holder) {
      holder += fmt::format(" by a process of user {}", master.holder->user);
    }
    throw Error::usage(fmt::format("cannot use port {} on the master", *wanted), holder)
        .mended_by(Remedy::choose_port, master.suggested_port ? std::to_string(*master.suggested_port) : "");
  }
  if (!master.suggested_port) {
    throw Error("cannot find a free port on the master", "all from 20000 to 32767 are in use")
        .mended_by(Remedy::choose_port);
  }
  return *master.suggested_port;
}

}  // namespace remote::servers
