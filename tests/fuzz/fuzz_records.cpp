#include <cstddef>
#include <cstdint>
#include <string>

#include "jobs/index.hpp"
#include "jobs/job_json.hpp"
#include "promise.hpp"

// job.json and the index may be damaged, or come from another machine. A parsed record stays the same when it
// is written and parsed again.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace remote;
  using namespace remote::fuzz;
  const std::string text(reinterpret_cast<const char*>(data), size);
  guarded([&] {
    const Job job = jobs::from_json_text(text);
    require(!job.pid || *job.pid > 0, "a pid names one process, never a group");
    const std::string once = jobs::to_json_text(job);
    require(jobs::to_json_text(jobs::from_json_text(once)) == once, "a record survives reading and writing");
  });
  const jobs::Index index(text);
  for (const char* digits : {"0123456789abcdef0123456789abcdef", "00000000000000000000000000000000"}) {
    const JobId id = *JobId::parse(digits);
    if (const jobs::Index::Row* row = index.find(id)) {
      if (const auto job = jobs::Index::job(*row)) {
        require(job->id == id, "a row is of its job");
      }
    }
  }
  return 0;
}
