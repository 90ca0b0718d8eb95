// The facts of a server as JSON (docs/check.md).

#include <nlohmann/json.hpp>

#include "cli/context.hpp"
#include "cli/show/check.hpp"
#include "cli/show/gpus.hpp"

namespace remote::cli {
namespace {

nlohmann::json disks_json(const ServerFacts& facts) {
  auto disks = nlohmann::json::object();
  for (const DiskFacts& disk : facts.disks) {
    disks[disk.what] = {{"path", disk.path},
                        {"there", disk.there},
                        {"writable", disk.writable},
                        {"type", or_null(disk.type)},
                        {"total_bytes", disk.total_bytes},
                        {"free_bytes", disk.free_bytes},
                        {"inodes", disk.inodes},
                        {"free_inodes", disk.free_inodes},
                        {"rotational", or_null(disk.rotational)}};
  }
  return disks;
}

nlohmann::json infiniband_json(const ServerFacts& facts) {
  auto ports = nlohmann::json::array();
  for (const InfinibandPort& port : facts.infiniband) {
    ports.push_back({{"device", port.device},
                     {"port", port.port},
                     {"layer", port.layer},
                     {"state", port.state},
                     {"rate", or_null(port.rate)}});
  }
  return ports;
}

nlohmann::json import_json(const std::optional<ImportFacts>& import) {
  if (!import) {
    return nullptr;
  }
  auto libraries = nlohmann::json::array();
  for (const LibraryFacts& library : import->libraries) {
    libraries.push_back({{"name", library.name},
                         {"path", library.path},
                         {"digest", library.digest},
                         {"bytes", library.size}});
  }
  return {{"error", or_null(import->error)}, {"trouble", or_null(import->trouble)},
          {"torch", or_null(import->torch)}, {"seconds", import->took.count()},
          {"devices", import->devices},      {"cuda", or_null(import->cuda == "-" ? "" : import->cuda)},
          {"nccl", or_null(import->nccl)},   {"libraries", libraries}};
}

}  // namespace

nlohmann::json to_json(const ServerFacts& facts) {
  auto limits = nlohmann::json::object();
  for (const auto& [name, limit] : facts.limits) {
    limits[name] = or_null(limit);
  }
  auto packages = nlohmann::json::object();
  for (const auto& [name, package] : facts.packages) {
    packages[name] = package.version;
  }
  return {
      {"host", or_null(facts.host)},
      {"os", or_null(facts.os)},
      {"kernel", or_null(facts.kernel)},
      {"user", or_null(facts.user)},
      {"cpu",
       {{"model", or_null(facts.cpu)},
        {"sockets", facts.sockets},
        {"cores", facts.cores},
        {"threads", facts.threads},
        {"usable_threads", facts.usable_threads},
        {"numa_nodes", facts.numa_nodes},
        {"limit", or_null(facts.cpu_limit)}}},
      {"memory",
       {{"total_bytes", facts.memory},
        {"available_bytes", facts.memory_available},
        {"limit_bytes", or_null(facts.memory_limit)}}},
      {"load", facts.load},
      {"disks", disks_json(facts)},
      {"limits", limits},
      {"clock_ahead_s", facts.clock_ahead.count()},
      {"python", {{"version", or_null(facts.python)}, {"program", or_null(facts.python_program)}}},
      {"torch",
       {{"version", or_null(facts.torch)},
        {"cuda", or_null(facts.cuda)},
        {"hip", or_null(facts.hip)},
        {"nccl", or_null(facts.nccl)}}},
      {"packages", packages},
      {"import", import_json(facts.imported)},
      {"driver", or_null(facts.driver)},
      {"gpus", to_json(facts.gpus)},
      {"infiniband", infiniband_json(facts)},
      {"programs", facts.programs},
      {"kill_user_processes", facts.kill_user_processes},
      {"linger", facts.linger},
  };
}

}  // namespace remote::cli
