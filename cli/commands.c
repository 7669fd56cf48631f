/* commands.c - the one table: every command and flag of the program. Help, man pages, docs/cli.md
 * and completions are written from it by help.c and tools/gen_cli_docs.c. */
#include "cli.h"
#include "core/config.h"
#include "core/stage.h"
#include "doctor/doctor.h"
#include "jobs/ledgers.h"
#include "jobs/runs.h"

#include <limits.h>
#include <string.h>

const fth_flag cli_globals[] = {
    {.name = "memory",
     .value = FTH_FLAG_SIZE,
     .doc = "memory budget: 8G, 512MiB, or a percentage of what is free, 50%"},
    {.name = "device-memory", .value = FTH_FLAG_SIZE, .doc = "memory budget on the device"},
    {.name = "device",
     .value = FTH_FLAG_DEVICE,
     .doc = "where to compute: auto, cpu, cuda or cuda:N; only auto falls back"},
    {.name = "plain-products", .doc = "on a GPU: f32 products without tensor cores"},
    {.name = "threads",
     .value = FTH_FLAG_COUNT,
     .doc = "worker threads; 0, the default, is one per usable core"},
    {.name = "seed", .value = FTH_FLAG_COUNT, .doc = "seed of all random numbers"},
    {.name = "plan", .doc = "show the plan and its memory, and stop"},
    {.name = "ranks",
     .value = FTH_FLAG_COUNT,
     .doc = "with --plan: for this many ranks, as mpirun starts them"},
    {.name = "json", .doc = "write JSON, for programs and bug reports"},
    {.name = "trace",
     .value = FTH_FLAG_FILE,
     .doc = "write a timeline for Chrome or Perfetto; compressed if it ends in .gz"},
    {.name = "trace-kernels",
     .doc = "with --trace: also each kernel and copy of a GPU, from its profiler (CUPTI)"},
    {.name = "monitor",
     .value = FTH_FLAG_PERIOD,
     .doc = "sample GPUs and process every N seconds: gpu_monitor.log, host_monitor.csv"},
    {.name = "scratch",
     .value = FTH_FLAG_DIR,
     .doc = "folder for temporary files that replace memory"},
    {.name = "log",
     .value = FTH_FLAG_LEVEL,
     .doc = "write log lines up to this level to standard error"},
    {.name = "quiet", .doc = "write nothing but results and errors"},
    {.name = "help", .doc = "show help and stop"},
};
const int cli_n_globals = sizeof cli_globals / sizeof cli_globals[0];

const fth_flag cli_plan_flags[] = {
    {.name = "config",
     .value = FTH_FLAG_PATH,
     .letter = 'c',
     .doc = "config of one job or of many, or a folder"},
    {.name = "set", .value = FTH_FLAG_SET, .many = true, .doc = "change one key of the config"},
    {.name = "lenient", .doc = "report unknown keys of the config as notices, not errors"},
    {0}};

static const fth_flag run_flags[] = {
    {.name = "config",
     .value = FTH_FLAG_PATH,
     .letter = 'c',
     .many = true,
     .doc = "config, or folder with configs"},
    {.name = "config-name",
     .value = FTH_FLAG_WORD,
     .doc = "name of the configs to look for in folders; default general.yaml"},
    {.name = "set",
     .value = FTH_FLAG_SET,
     .many = true,
     .doc = "change one key of every config, as in training.max_iter=100"},
    {.name = "over",
     .value = FTH_FLAG_SET,
     .many = true,
     .doc = "one job for each value, as in fit.rate=0.1,0.2; several: for each combination"},
    {.name = "skip-general", .doc = "in folders, take every config that is not general"},
    {.name = "lenient", .doc = "report unknown keys of configs as notices, not errors"},
    {.name = "jobs",
     .value = FTH_FLAG_COUNT,
     .letter = 'j',
     .doc = "maximum concurrent tasks; default: as many as threads"},
    {.name = "jobs-per-device",
     .value = FTH_FLAG_COUNT,
     .doc = "maximum concurrent tasks on one GPU; default: as many as fit"},
    {.name = "gpu-only", .doc = "tasks that can use a GPU wait for one"},
    {.name = "only",
     .value = FTH_FLAG_JOB,
     .many = true,
     .doc = "only jobs, or stages as JOB/STAGE, whose names fit this shell pattern"},
    {.name = "failed", .doc = "only jobs that failed or were interrupted, from run_status.json"},
    {.name = "force", .doc = "ignore cached results, and replace results of other configs"},
    {.name = "rerun",
     .value = FTH_FLAG_STAGE,
     .many = true,
     .doc = "ignore cached results of this stage"},
    {.name = "time-limit",
     .value = FTH_FLAG_WORD,
     .many = true,
     .doc = "end stages that run longer, as in 30m or train=1h30m; they resume in the next run"},
    {.name = "retries",
     .value = FTH_FLAG_COUNT,
     .doc = "start a failed task again up to N times, unless its exit code is 2, 4 or 7"},
    {.name = "verify", .doc = "hash inputs whole, whatever their size and modification time"},
    {.name = "dry-run",
     .letter = 'n',
     .doc = "show jobs, paths, order, predicted memory and time; write nothing"},
    {.name = "notify",
     .value = FTH_FLAG_WORD,
     .doc = "run this shell command at the end, with FATHOM_STATUS, FATHOM_SUMMARY and others set"},
    {.name = "no-live", .doc = "print one line per change instead of a table"},
    {.name = "status", .value = FTH_FLAG_FILE, .doc = "where to write run_status.json"},
    {.name = "executor",
     .value = FTH_FLAG_WORD,
     .doc = "where tasks run: local, as processes of this machine, or slurm, as jobs of a cluster"},
    {.name = "slurm",
     .value = FTH_FLAG_SET,
     .many = true,
     .doc = "with --executor slurm: a key of the section slurm of configs, as partition, account, "
            "time, cpus, gpus, modules, or any option of sbatch"},
    {.name = "detach",
     .doc = "with --executor slurm: submit and return; the same command later follows the jobs"},
    {0}};

const cli_command cli_commands[] = {
    {
        .name = "cancel",
        .args = "JOB",
        .max_args = 1,
        .brief = "stop one running job, and let the others continue",
        .doc = "Asks the runner of the job's directory to stop its running stage, which saves a "
               "resumable state; later stages are skipped. The name may be the end of a job's name "
               "if no other job matches; 'JOB/STAGE' names a stage."
               "\n\n"
               "A job of Slurm that no runner follows is cancelled with scancel; the command waits "
               "until it has ended, and writes the ledger.",
        .example = "fathom cancel liver_svgp\nfathom cancel liver_svgp/train --dir outputs",
        .globals = "quiet",
        .own = (const fth_flag[]){{.name = "dir",
                                   .value = FTH_FLAG_DIR,
                                   .doc = "folder with the results; default: the current one"},
                                  {0}},
        .run = cli_run_cancel,
    },
    {
        .name = "config check",
        .args = "PATH...",
        .max_args = INT_MAX,
        .brief = "report all mistakes in configs, or the jobs they stand for",
        .doc =
            "Reads configs as 'fathom run' would, and reports every mistake of every file at once, "
            "with its line and column. A folder is searched for general.yaml, or for every "
            "config when it has none. Configs without mistakes are also compared with each other: "
            "two jobs that would write to one place are refused."
            "\n\n"
            "Without mistakes, one line per file names the instrument, the models and the output "
            "directory. Nothing is written. The exit code is 2 when there are mistakes.",
        .example = "fathom config check configs/liver/general.yaml\n"
                   "fathom config check configs/ --set training.max_iter=100\n"
                   "fathom config check configs/liver/svgp.yaml --json",
        .globals = "json quiet",
        .own =
            (const fth_flag[]){
                {.name = "config-name",
                 .value = FTH_FLAG_WORD,
                 .doc = "name of the configs to look for in folders; default general.yaml"},
                {.name = "set",
                 .value = FTH_FLAG_SET,
                 .many = true,
                 .doc = "change one key of every config, as in training.max_iter=100"},
                {.name = "lenient", .doc = "report unknown keys of configs as notices, not errors"},
                {0}},
        .run = cli_run_config_check,
    },
    {
        .name = "config docs",
        .args = "[INSTRUMENT]",
        .max_args = 1,
        .brief = "describe every key that the configs of an instrument may have",
        .doc = "Prints tables of all keys in Markdown: type, range, default, unit and meaning. "
               "Without a name, the instruments are listed.",
        .example = "fathom config docs\nfathom config docs spatial > keys.md",
        .globals = "",
        .run = cli_run_config_docs,
    },
    {
        .name = "clean",
        .args = "[DIR]",
        .max_args = 1,
        .brief = "remove leftovers of interrupted runs from a folder",
        .doc = "Removes temporary files of dead processes, locks of crashed runners and unread "
               "requests, in DIR and below. With --all also everything that runs wrote there: "
               "results, figures, logs and the ledger, but never inputs or files "
               "that Fathom did not make. The files are listed first, and on a terminal you are "
               "asked."
               "\n\n"
               "While a runner lives in one of the directories nothing is removed.",
        .example = "fathom clean outputs --dry-run\nfathom clean outputs/liver --all --yes",
        .globals = "quiet",
        .own =
            (const fth_flag[]){
                {.name = "all", .doc = "also remove results, logs and the ledger"},
                {.name = "dry-run", .letter = 'n', .doc = "only list what would be removed"},
                {.name = "yes", .doc = "do not ask"},
                {0}},
        .run = cli_run_clean,
    },
    {
        .name = "doctor",
        .args = "",
        .brief = "inspect this machine: what Fathom can use, and what prevents it",
        .doc =
            "Shows the devices and which one is used and why, memory and its limits, the scratch "
            "folder, measured bandwidths, the libraries found, and a self-test: small "
            "computations with the fast kernels, compared with the plain reference loops. Each "
            "problem is one sentence with one remedy. Takes about a second."
            "\n\n"
            "With --path, also where the data lie: the file system, free space, how fast a file is "
            "read (of a folder, its largest) with and without O_DIRECT, and how long opening "
            "takes. With --data-root and --exp, whether an experiment could be run: its files, "
            "missing "
            "frames, gaps in time, the plate's table, what would be written, how long it would "
            "take "
            "and what would bound it. With --calibrate, how fast kernels and memory are, and the "
            "GPU "
            "unless --device cpu, in ten seconds or so, more with a GPU, and best with nothing "
            "else running: "
            "predicted seconds follow it, and the choice of pieces, never a result; it is kept in "
            "~/.cache/fathom for this model of CPU. With --bundle, all of it and the facts behind "
            "it in one file "
            "for a bug "
            "report: of the environment only the variables that doctor shows."
            "\n\n"
            "The exit code is 0 when the machine can run Fathom, also when notices are shown; 3 "
            "when the path of --path or the experiment cannot be read; 5 when the device asked for "
            "with --device "
            "cannot be used; 70 when the self-test finds a difference.",
        .example = "fathom doctor\nfathom doctor --device cuda\nfathom doctor --path /data/scans\n"
                   "fathom doctor --bundle report.tar\nfathom doctor --ops --json > report.json",
        .globals = "memory device threads json monitor scratch log",
        .own =
            (const fth_flag[]){
                {.name = "ops",
                 .doc = "also show which operations support which dtypes on the device"},
                {.name = "path",
                 .value = FTH_FLAG_PATH,
                 .doc = "also measure the read speed there"},
                {.name = "data-root",
                 .value = FTH_FLAG_DIR,
                 .doc = "also check an experiment in this data tree"},
                {.name = "exp", .value = FTH_FLAG_WORD, .doc = "its name"},
                {.name = "microscope",
                 .value = FTH_FLAG_WORD,
                 .doc = "microscope: YX1 or Keyence; default: detected"},
                {.name = "calibrate",
                 .doc = "also measure the rates that plans are predicted by, and keep them"},
                {.name = "bundle",
                 .value = FTH_FLAG_FILE,
                 .doc = "also write a tar file for a bug report; it holds no secrets"},
                {0}},
        .run = cli_run_doctor,
    },
    {
        .name = "help",
        .args = "[COMMAND]",
        .max_args = 2,
        .brief = "show all commands, or one with its flags",
        .doc =
            "Without a name, the list of commands; with one, what it does, its flags and examples.",
        .example = "fathom help doctor",
        .globals = "",
        .run = cli_run_help,
    },
    {
        .name = "logs",
        .args = "JOB",
        .max_args = 1,
        .brief = "show the log of a job",
        .doc =
            "Shows the log of the stage that runs, or ran last: JOB is a name as 'fathom status' "
            "shows it, its end if no other job has the same, or JOB/STAGE. Only the part of the "
            "last run is shown. With -f it continues until the stage ends.",
        .example =
            "fathom logs liver_svgp -f\nfathom logs liver_svgp/train --lines 50 --dir outputs",
        .globals = "",
        .own =
            (const fth_flag[]){
                {.name = "follow", .letter = 'f', .doc = "follow the log until the stage ends"},
                {.name = "dir",
                 .value = FTH_FLAG_DIR,
                 .doc = "where to look for the job; default: the current folder and below"},
                {.name = "stage", .value = FTH_FLAG_WORD, .doc = "stage whose log is shown"},
                {.name = "all", .doc = "the whole file, with the parts of earlier runs"},
                {.name = "lines",
                 .value = FTH_FLAG_COUNT,
                 .doc = "show only the last lines, so many"},
                {0}},
        .run = cli_run_logs,
    },
    {
        .name = "plan",
        .args = "",
        .brief = "show the memory of every stage of a config, without running any",
        .doc = "Plans all stages of the jobs of a config within the memory budget, from metadata "
               "alone, and writes nothing. The exit code is 4 when one does not fit.",
        .example = "fathom plan -c configs/liver/svgp.yaml --memory 8G",
        .globals = "memory device threads seed json scratch log ranks",
        .own = cli_plan_flags,
        .run = cli_run_plan,
    },
    {
        .name = "run",
        .args = "STAGE...|all",
        .max_args = 16,
        .brief = "run the stages of all jobs of some configs",
        .doc = "Finds the configs, expands general ones into one job for each model, and refuses "
               "two jobs that would write to one place before anything is made. Each stage runs as "
               "a process of its own with a log in the folder logs of its output directory; as "
               "many run at a time as their predicted memory allows. Finished, unchanged stages "
               "are cached; changed ones run again and say why."
               "\n\n"
               "Ctrl-Z pauses the stages too. "
               "Ctrl-C ends the running stages cleanly and saves the state, exit code 6; a second "
               "one kills them. A run that was killed resumes when it is started again. "
               "run_status.json is kept up to date in the folder of the configs, or in the output "
               "directory when no folder was given.",
        .example = "fathom run all -c configs/ --config-name general_test.yaml\n"
                   "fathom run train -c configs/liver/svgp.yaml --set training.max_iter=100\n"
                   "fathom run all -c configs/ --failed",
        .globals = "memory device plain-products threads seed plan json monitor trace "
                   "trace-kernels scratch log quiet",
        .own = run_flags,
        .run = cli_run_run,
    },
    {
        .name = "report",
        .args = "[DIR]",
        .max_args = 1,
        .brief = "write one HTML page about all jobs below a folder",
        .doc = "Reads the ledgers in DIR, by default the current folder, and below it, and writes "
               "DIR/report.html: a summary, all jobs with their stages, logs and outputs, figures, "
               "planned and measured memory, a timeline, and failures with the ends of their logs. "
               "The page needs no network. Small pictures of the figures, up to 20 MB, are inside "
               "it, and links lead to the files: move the folder as a whole. With --embed the "
               "figures themselves are inside as well, and the page can be sent alone."
               "\n\n"
               "The page is written whole or not at all, and its path is printed.",
        .example = "fathom report outputs\nfathom report outputs -o atlas.html --embed",
        .globals = "",
        .own = (const fth_flag[]){{.name = "output",
                                   .value = FTH_FLAG_FILE,
                                   .letter = 'o',
                                   .doc = "write the page there instead of DIR/report.html"},
                                  {.name = "embed", .doc = "put whole figures into the page"},
                                  {0}},
        .run = cli_run_report,
    },
    {
        .name = "serve",
        .args = "[DIR]",
        .max_args = 1,
        .brief = "show the report in a browser, refreshing while jobs run",
        .doc =
            "Serves the page of 'fathom report' for DIR, by default the current folder, and "
            "prints its address; the page asks for new data every two seconds. It only shows: "
            "nothing can be started, changed or read but the figures and logs of the jobs."
            "\n\n"
            "Only this machine can reach it, unless --bind gives another address, such as 0.0.0.0. "
            "Everybody needs the token that is part of the addresses printed, for other users of "
            "this machine can reach it too; it is a new one each time unless --token gives it. "
            "--no-token goes without, on this machine alone. The connection is not encrypted: on "
            "networks you do "
            "not trust, use a tunnel (ssh -L 8700:localhost:8700 HOST). SIGINT (Ctrl+C) ends it "
            "with exit code 0.",
        .example = "fathom serve outputs\nfathom serve outputs --bind 0.0.0.0 --port 9000",
        .globals = "quiet",
        .own = (const fth_flag[]){{.name = "port",
                                   .value = FTH_FLAG_COUNT,
                                   .doc = "port to listen on; default 8700; 0: any free one"},
                                  {.name = "bind",
                                   .value = FTH_FLAG_WORD,
                                   .doc = "address of this machine to listen on, by default "
                                          "127.0.0.1"},
                                  {.name = "token",
                                   .value = FTH_FLAG_WORD,
                                   .doc = "access token, 8 or more letters and digits"},
                                  {.name = "no-token",
                                   .doc = "allow every user of this machine to read"},
                                  {0}},
        .run = cli_run_serve,
    },
    {
        .name = "status",
        .args = "[DIR]",
        .max_args = 1,
        .brief = "show the jobs of a folder and how far they are",
        .doc =
            "Reads the ledgers in DIR and below and shows a table of all stages of all jobs: what "
            "runs comes first, then what waits, then what is done. Nothing is written, and it can "
            "be used during a run."
            "\n\n"
            "With --watch the table is redrawn four times a second until no job runs; "
            "where the output is no terminal, one line is written for every change. "
            "While somebody runs jobs there, a line says how far the whole run is and about how "
            "long it still takes.",
        .example = "fathom status\nfathom status outputs --watch\nfathom status --json | jq .tasks",
        .globals = "json quiet",
        .own = (const fth_flag[]){{.name = "watch", .doc = "refresh until no job runs"},
                                  {.name = "names",
                                   .doc = "list only the names, of jobs and of their stages"},
                                  {0}},
        .run = cli_run_status,
    },
    {
        .name = "version",
        .args = "",
        .brief = "show the version and what it was built with",
        .doc =
            "Prints the version. With --verbose also how the program was built, and every library "
            "found with its version, its file and what it is used for.",
        .example = "fathom version --verbose",
        .globals = "json",
        .own =
            (const fth_flag[]){{.name = "verbose", .doc = "also show the build and the libraries"},
                               {0}},
        .run = cli_run_version,
    },
};
/* For our own batch scripts: found by its name and in no list. */
const cli_command cli_worker = {
    .name = "task",
    .args = "LIST NUMBER",
    .max_args = 2,
    .brief = "run one task of a job array, on a node of a cluster",
    .doc = "Called by the batch scripts that 'fathom run --executor slurm' submits: runs task "
           "NUMBER of the array that LIST describes, with the memory and the threads given "
           "there, and leaves beside the list how it ended. A task whose results are there and "
           "unchanged is not run again.",
    .example = "fathom task outputs/liver/.fathom/slurm.d/TOKEN/array0000.json 3",
    .globals = "device log quiet",
    .run = cli_run_task,
};

const int cli_n_commands = sizeof cli_commands / sizeof cli_commands[0];

const cli_command *cli_command_at(int i)
{
    if (i < 0) return NULL;
    return i < cli_n_commands ? &cli_commands[i] : cli_verb_at(i - cli_n_commands);
}

static const struct {
    const char *word, *brief;
} groups[] = {
    {"config", "check configs, and describe their keys"},
};

const char *cli_group_brief(const char *word)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (strcmp(groups[i].word, word) == 0) return groups[i].brief;
    for (int i = 0; cli_verb_at(i); i++)
        if (strcmp(cli_verb_at(i)->instrument->name, word) == 0)
            return cli_verb_at(i)->instrument->brief;
    return "";
}

const cli_exit cli_exits[] = {
    {0, "done"},
    {1, "a job failed"},
    {2, "a mistake in the command line or in a config"},
    {3, "a bad data file"},
    {4, "it does not fit in the memory allowed"},
    {5, "the device or cluster asked for cannot be used"},
    {6, "interrupted; what was done is saved"},
    {7, "a computation has no answer"},
    {70, "a mistake of Fathom's own; please report it"},
};
const int cli_n_exits = sizeof cli_exits / sizeof cli_exits[0];
