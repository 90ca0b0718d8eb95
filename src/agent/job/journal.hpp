#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "agent/host/host.hpp"
#include "agent/host/path.hpp"
#include "rules/job_history.hpp"

// The journal of a job, in its folder and, if that cannot be written, in the fallback folder.

namespace remote::agent {

constexpr std::string_view journal_name = "journal.jsonl";

rules::JobHistory read_history(const Host& host, const Path& job_folder, const std::string& id);
// Ignores the fallback folder.
rules::JobHistory read_own_history(const Path& job_folder);

// Appends to the journal in the job's folder. Returns false on failure. On a full disk, this uses the
// reserved space.
bool append_to_journal(const Path& job_folder, const wire::JobEntry& entry);
// Uses the fallback folder if necessary, unless the job's folder is missing or inaccessible.
bool append_safely(const Host& host, const Path& job_folder, const std::string& id,
                   const wire::JobEntry& entry);

// If the job has ended, keeps the modification time of its journal, which is the time of the end by the clock
// of the file system, while entries are appended.
class KeptJournalTime {
 public:
  explicit KeptJournalTime(const Path& job_folder);
  ~KeptJournalTime();
  KeptJournalTime(const KeptJournalTime&) = delete;
  KeptJournalTime& operator=(const KeptJournalTime&) = delete;

 private:
  Path journal_;
  std::optional<timespec> time_{};
};

// Reserves disk space for the next entries. Creates the journal if necessary.
void reserve_journal(const Path& job_folder);
// Gives up the reserved space, if it is a file of its own.
void release_journal(const Path& job_folder);

// Copies entries from the fallback folder to the job's journal. Returns whether there were any and all were
// copied.
bool restore_journal(const Host& host, const Path& job_folder, const std::string& id);

}  // namespace remote::agent
