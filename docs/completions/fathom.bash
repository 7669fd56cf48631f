# Completion of fathom for bash. Made from cli/commands.c by make docs; do not edit.
_fathom() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    local first='' second='' words='' known="cancel config clean doctor help logs plan run report serve status version bragg focus sounding spatial" i
    COMPREPLY=()
    case $before in
    --dir)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    --trace)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --config-name)
        return
        ;;
    --set)
        return
        ;;
    --path)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --data-root)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    --exp)
        return
        ;;
    --microscope)
        return
        ;;
    --bundle)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --memory)
        return
        ;;
    --device)
        mapfile -t COMPREPLY < <(compgen -W "auto cpu cuda" -- "$word")
        return
        ;;
    --threads)
        return
        ;;
    --monitor)
        return
        ;;
    --scratch)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    --log)
        mapfile -t COMPREPLY < <(compgen -W "error warn info debug" -- "$word")
        return
        ;;
    --stage)
        return
        ;;
    --lines)
        return
        ;;
    --config | -c)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --seed)
        return
        ;;
    --jobs | -j)
        return
        ;;
    --jobs-per-device)
        return
        ;;
    --rerun)
        return
        ;;
    --status)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --output | -o)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --port)
        return
        ;;
    --bind)
        return
        ;;
    --token)
        return
        ;;
    --compat)
        return
        ;;
    --quirk)
        return
        ;;
    --precision)
        return
        ;;
    --fdump)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --checkpoint)
        return
        ;;
    --smv32)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --cbf)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --preview)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --preview-scale)
        return
        ;;
    --device-memory)
        return
        ;;
    --attempt)
        return
        ;;
    --free)
        return
        ;;
    --fix)
        return
        ;;
    --tie)
        return
        ;;
    --iterations)
        return
        ;;
    --adc)
        return
        ;;
    --gain)
        return
        ;;
    --dataset)
        return
        ;;
    --frame)
        return
        ;;
    --out)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --figure)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --only)
        return
        ;;
    --dpi)
        return
        ;;
    --format)
        return
        ;;
    --method)
        return
        ;;
    --measure)
        return
        ;;
    --filter-size)
        return
        ;;
    --filter-um)
        return
        ;;
    --sigma)
        return
        ;;
    --border)
        return
        ;;
    --levels)
        return
        ;;
    --window)
        return
        ;;
    --base)
        return
        ;;
    --consistency)
        return
        ;;
    --reassign)
        return
        ;;
    --interp)
        return
        ;;
    --halo)
        return
        ;;
    --prefer)
        return
        ;;
    --low)
        return
        ;;
    --high)
        return
        ;;
    --scale)
        return
        ;;
    --polarity)
        return
        ;;
    --reject)
        return
        ;;
    --alpha)
        return
        ;;
    --corr)
        return
        ;;
    --compat-batch)
        return
        ;;
    --channel)
        return
        ;;
    --channels)
        return
        ;;
    --z-keep)
        return
        ;;
    --z-range)
        return
        ;;
    --wells)
        return
        ;;
    --times)
        return
        ;;
    --z-step)
        return
        ;;
    --um-per-px)
        return
        ;;
    --rgb-order)
        return
        ;;
    --nd2-search)
        return
        ;;
    --read-mode)
        return
        ;;
    --image-format)
        return
        ;;
    --scalebar)
        return
        ;;
    --workers)
        return
        ;;
    --raw)
        return
        ;;
    --trace-stacks)
        return
        ;;
    --layout)
        return
        ;;
    --map)
        return
        ;;
    --ref-xy)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --overlap)
        return
        ;;
    --blend)
        return
        ;;
    --orientation)
        return
        ;;
    --grid)
        return
        ;;
    --run-dir)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --planes)
        return
        ;;
    --size)
        return
        ;;
    --z)
        return
        ;;
    --height)
        return
        ;;
    --width)
        return
        ;;
    --batch)
        return
        ;;
    --iters)
        return
        ;;
    --warmup)
        return
        ;;
    --devices)
        return
        ;;
    --ngff)
        return
        ;;
    --compressor)
        return
        ;;
    --tile)
        return
        ;;
    --replay)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --record)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --deviance)
        return
        ;;
    --cells)
        return
        ;;
    --side)
        return
        ;;
    --genes)
        return
        ;;
    --factors)
        return
        ;;
    --groups)
        return
        ;;
    --missing-groups)
        return
        ;;
    --lengthscale)
        return
        ;;
    --jitter)
        return
        ;;
    --density)
        return
        ;;
    --sampler)
        return
        ;;
    --h5ad)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --model | -m)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --data)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    --n-pairs)
        return
        ;;
    --match-against)
        return
        ;;
    --assignment)
        return
        ;;
    --over)
        return
        ;;
    --truth)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --key)
        return
        ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [ -n "$first" ]; then
            case ${COMP_WORDS[i]} in -*) ;; *) second=${COMP_WORDS[i]}; break ;; esac
        fi
        case " $known " in *" ${COMP_WORDS[i]} "*) first=${COMP_WORDS[i]} ;; esac
    done
    case "$first $second" in
    ' '*) words="$known --help --version" ;;
    'cancel '*) words="--dir --trace --quiet --help" ;;
    'config check'*) words="--config-name --set --lenient --json --trace --quiet --help" ;;
    'config docs'*) words="--trace --help" ;;
    'clean '*) words="--all --dry-run --yes --trace --quiet --help" ;;
    'doctor '*) words="--ops --path --data-root --exp --microscope --bundle --memory --device --threads --json --trace --monitor --scratch --log --help" ;;
    'help '*) words="--trace --help $known" ;;
    'logs '*) words="--follow --dir --stage --all --lines --trace --help" ;;
    'plan '*) words="--config --set --lenient --memory --device --threads --seed --json --trace --scratch --log --help" ;;
    'run '*) words="--config --config-name --set --skip-general --lenient --jobs --jobs-per-device --gpu-only --failed --force --rerun --verify --dry-run --no-live --status --memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'report '*) words="--output --embed --trace --help" ;;
    'serve '*) words="--port --bind --token --no-token --trace --quiet --help" ;;
    'status '*) words="--watch --json --trace --quiet --help" ;;
    'version '*) words="--verbose --json --trace --help" ;;
    'bragg render'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'bragg figures'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'bragg plan'*) words="--config --set --lenient --memory --device-memory --device --threads --seed --json --trace --scratch --log --help" ;;
    'bragg generate'*) words="--config --force --json --trace --quiet --help" ;;
    'bragg refine'*) words="--free --fix --tie --iterations --adc --gain --dataset --frame --no-lattice --out --figure --compat --quirk --fdump --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'bragg noisify'*) words="--compat --quirk --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'bragg nonbragg'*) words="--compat --quirk --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'bragg draw'*) words="--compat --quirk --out --only --dpi --format --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus index'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus fuse'*) words="--config --set --lenient --verify --attempt --force --replace --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus stitch'*) words="--config --set --lenient --verify --attempt --force --replace --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus figures'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus stack'*) words="--output --method --measure --filter-size --filter-um --sigma --border --levels --window --base --consistency --reassign --clamp --interp --halo --prefer --low --high --scale --polarity --reject --alpha --corr --compat --compat-batch --channel --channels --z-keep --z-range --wells --times --z-step --um-per-px --rgb-order --nd2-search --read-mode --image-format --index-map --depth-map --confidence --metrics --scalebar --workers --require-gpu --strict --ignore-space --raw --memory --device-memory --device --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus run'*) words="--data-root --exp --microscope --method --measure --filter-size --filter-um --sigma --border --levels --window --base --consistency --reassign --clamp --interp --halo --prefer --low --high --scale --polarity --reject --alpha --corr --compat --compat-batch --channel --channels --z-keep --z-range --wells --times --z-step --um-per-px --rgb-order --nd2-search --read-mode --image-format --index-map --depth-map --confidence --metrics --scalebar --workers --require-gpu --strict --ignore-space --trace-stacks --overwrite --force-config --layout --metadata-only --map --ref-xy --allow-duplicate-wells --fix-time-jumps --overlap --blend --orientation --grid --stitch-z --overwrite-stitch --run-dir --memory --device-memory --device --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus plan'*) words="--data-root --exp --microscope --method --measure --filter-size --filter-um --sigma --border --levels --window --base --consistency --reassign --clamp --interp --halo --prefer --low --high --scale --polarity --reject --alpha --corr --compat --compat-batch --channel --channels --z-keep --z-range --wells --times --z-step --um-per-px --rgb-order --nd2-search --read-mode --image-format --index-map --depth-map --confidence --metrics --scalebar --workers --require-gpu --strict --ignore-space --trace-stacks --overwrite --force-config --layout --metadata-only --map --ref-xy --allow-duplicate-wells --fix-time-jumps --overlap --blend --orientation --grid --stitch-z --overwrite-stitch --run-dir --memory --device-memory --device --threads --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus info'*) words="--crc --memory --device-memory --device --threads --json --trace --trace-kernels --monitor --scratch --log --help" ;;
    'focus sheet'*) words="--data-root --exp --output --layout --run-dir --memory --device-memory --device --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus init-plate'*) words="--output --memory --device-memory --device --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus toy'*) words="--output --exp --microscope --wells --times --planes --size --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus bench'*) words="--z --height --width --batch --iters --warmup --filter-size --method --devices --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus convert'*) words="--output --data-root --exp --layout --stacks --microscope --map --ref-xy --ngff --compressor --tile --levels --wells --times --channels --um-per-px --z-step --overwrite --ignore-space --memory --device-memory --device --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus selftest'*) words="--devices --output --memory --device-memory --device --threads --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'sounding survey'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'sounding fit'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'sounding analyze'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'sounding figures'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'sounding plan'*) words="--config --set --lenient --memory --device-memory --device --threads --seed --json --trace --scratch --log --help" ;;
    'sounding generate'*) words="--config --force --json --trace --quiet --help" ;;
    'sounding depth'*) words="--fathoms --memory --device-memory --device --threads --json --trace --trace-kernels --monitor --scratch --log --help" ;;
    'spatial preprocess'*) words="--config --set --lenient --verify --attempt --force --replace --keep --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial train'*) words="--config --set --lenient --verify --attempt --force --resume --resume-optimizer --video --probabilistic --replay --record --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial analyze'*) words="--config --set --lenient --verify --attempt --force --probabilistic --strict-json --allow-other-data --strict --deviance --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial figures'*) words="--config --set --lenient --verify --attempt --force --no-heatmap --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial plan'*) words="--config --set --lenient --memory --device-memory --device --threads --seed --json --trace --scratch --log --help" ;;
    'spatial generate'*) words="--config --force --json --trace --quiet --help" ;;
    'spatial info'*) words="--memory --device-memory --device --threads --json --trace --trace-kernels --monitor --scratch --log --help" ;;
    'spatial toy'*) words="--output --cells --side --genes --factors --groups --missing-groups --lengthscale --alpha --jitter --density --sampler --h5ad --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial export'*) words="--config --output --memory --device-memory --device --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial project'*) words="--model --data --output --least-squares --memory --device-memory --device --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial multianalyze'*) words="--config --n-pairs --match-against --assignment --output --memory --device-memory --device --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial sweep'*) words="--config --over --output --memory --device-memory --device --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial recovery'*) words="--truth --key --log-space --memory --device-memory --device --threads --plan --json --trace --trace-kernels --monitor --scratch --log --help" ;;
    'config '*) words="check docs" ;;
    'bragg '*) words="render figures plan generate refine noisify nonbragg draw --compat --quirk --precision --fdump --checkpoint --smv32 --cbf --preview --preview-scale --flags --memory --device-memory --device --threads --seed --plan --json --trace --trace-kernels --scratch --log --quiet --help" ;;
    'focus '*) words="index fuse stitch figures stack run plan info sheet init-plate toy bench convert selftest" ;;
    'sounding '*) words="survey fit analyze figures plan generate depth" ;;
    'spatial '*) words="preprocess train analyze figures plan generate info toy export project multianalyze sweep recovery" ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _fathom fathom
